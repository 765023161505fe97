// Databases that plugins send batches to, and connections that are taken beside a session's own.
#include <array>

#include "base/random.h"
#include "base/text.h"
#include "plugin/batch.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

// Of this process alone: the name is shown, and must not be a means to try passwords.
const std::string& salt() {
  static const std::string bytes = [] {
    std::array<std::byte, 16> random;
    random_bytes(random);
    return std::string(as_text(random));
  }();
  return bytes;
}

// Connections are shared only where all is the same: the login, and what the greeting sets and asks.
std::string name_of(const BatchTarget& target) {
  std::string all = salt() + target.host + '\0' + std::to_string(target.port) + '\0' + target.database + '\0' +
                    target.user + '\0' + target.password + '\0' + target.greeting;
  return format("lokadb:%s#%llu-%zx", target.name.c_str(), static_cast<unsigned long long>(target.generation),
                std::hash<std::string>()(all));
}

}  // namespace

// A change of the target is a new one with another name; what nobody uses any more goes as auto-databases do.
Pool& Pooler::target_pool(const BatchTarget& target) {
  std::string name = name_of(target);
  std::lock_guard guard(lock);
  auto it = databases.find(name);
  if (it == databases.end()) {
    auto made = std::make_unique<Database>(name);
    auto entry = std::make_shared<DatabaseConfig>();
    entry->name = name;
    entry->dbname = target.database;
    if (!target.host.empty()) entry->hosts = {target.host};
    entry->port = static_cast<int>(target.port);
    entry->user = target.user;
    entry->password = target.password;
    entry->pool_mode = PoolMode::Transaction;
    made->config = std::move(entry);
    made->is_target = true;
    made->greeting = target.greeting;
    it = databases.emplace(std::move(name), std::move(made)).first;
  }
  return pool(*it->second, target.user);
}

ServerConnection* Pooler::take_free(ClientSession& session) {
  Pool& pool = *session.pool();
  ServerConnection* server = nullptr;
  {
    std::lock_guard guard(lock);
    if (shutdown_mode == ShutdownMode::WaitForServers || !may_serve(pool) || !pool.waiters.empty()) return nullptr;
    server = choose_idle(pool, session.worker, session.worker.loop.now()).own;
    if (server == nullptr) return nullptr;
    pool.idle.remove(server);
  }
  server->link(session);
  return server->state() == ServerState::Active ? server : nullptr;
}

}  // namespace lokadb
