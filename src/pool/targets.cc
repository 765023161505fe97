// Databases that plugins send batches to, and connections that are taken beside a session's own.
#include "plugin/batch_target.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

// A change of the target is a new one with another name; what nobody uses any more goes as auto-databases do.
Pool& Pooler::target_pool(const BatchTargetPtr& to) {
  const NamedTarget& target = *to;
  std::lock_guard guard(lock);
  auto it = databases.find(target.pool);
  if (it == databases.end()) {
    auto made = std::make_unique<Database>(target.pool);
    auto entry = std::make_shared<DatabaseConfig>();
    entry->name = target.pool;
    entry->dbname = target.database;
    if (!target.host.empty()) entry->hosts = {target.host};
    entry->port = static_cast<int>(target.port);
    entry->user = target.user;
    entry->password = target.password;
    entry->pool_mode = PoolMode::Transaction;
    made->config = std::move(entry);
    made->is_target = true;
    made->greeting = target.greeting;
    it = databases.emplace(target.pool, std::move(made)).first;
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
