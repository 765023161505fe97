#include "pool/pooler.h"

#include <algorithm>
#include <condition_variable>

#include "base/clock.h"
#include "base/log.h"
#include "pool/cancel.h"
#include "pool/client_session.h"
#include "pool/handover.h"
#include "pool/peer_forward.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr std::string_view kConsoleName = "pgbouncer";
constexpr int kSmallBuffer = 4096;
constexpr int kGrowth = 16;
constexpr std::size_t kMostHelpers = 8;
constexpr std::size_t kMostWaitingForHelpers = 1000;
constexpr std::int64_t kLongLimit = 120'000'000;  // microseconds: a few seconds more do not matter

// One buffer serves all reads of a worker, so it may be large; a pkt_buf below the default is taken at its word.
std::size_t receive_size(const Options& o) {
  return static_cast<std::size_t>(o.pkt_buf < kSmallBuffer ? std::max(o.pkt_buf, 16)
                                                           : std::max(kSmallBuffer * kGrowth, o.pkt_buf));
}
}  // namespace

Pooler::Pooler(ConfigPtr c, int worker_count)
    : tracked(c->options.track_extra_parameters),
      started_us(wall_us()),
      older_mark_time(now_us()),
      newer_mark_time(older_mark_time),
      config(std::move(c)),
      helpers(kMostHelpers, kMostWaitingForHelpers) {
  for (int i = 0; i < worker_count; ++i)
    workers.push_back(std::make_unique<Worker>(*this, i, receive_size(config->options)));
  apply_config(config);
}

Pooler::~Pooler() { close_all(); }

TcpTuning Pooler::tcp_tuning() const {
  const Options& o = options();
  return {o.tcp_keepalive, o.tcp_keepcnt, o.tcp_keepidle, o.tcp_keepintvl, o.tcp_socket_buffer, o.tcp_user_timeout};
}

// ------------------------------------------------------------------ the world

void Pooler::run_alone(const std::function<void()>& fn) {
  if (is_stopping_) return;  // the other workers may have left their loops
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t arrived = 0;
    bool open = false;
    std::size_t left = 0;
  } gate;
  std::size_t others = workers.size() - 1;
  for (std::size_t i = 1; i < workers.size(); ++i) {
    workers[i]->loop.post([&gate] {
      std::unique_lock guard(gate.mutex);
      ++gate.arrived;
      gate.changed.notify_all();
      gate.changed.wait(guard, [&gate] { return gate.open; });
      ++gate.left;
      gate.changed.notify_all();
    });
  }
  std::unique_lock guard(gate.mutex);
  gate.changed.wait(guard, [&] { return gate.arrived == others; });
  fn();
  for (auto& worker : workers) worker->tick_soon();
  gate.open = true;
  gate.changed.notify_all();
  gate.changed.wait(guard, [&] { return gate.left == others; });  // `gate` lives on our stack
}

void Pooler::run_alone_later(std::function<void()> fn) {
  main_worker().loop.post([this, fn = std::move(fn)] { run_alone(fn); });
}

void Pooler::stop_all() {
  is_stopping_ = true;
  for (auto& worker : workers) worker->loop.stop();
}

void Pooler::close_all() {
  helpers.stop();
  if (is_handed_over) Handover::let_go(*this);
  // Messages between workers first: some carry a connection that is on no list. Two rounds, as one may post another.
  for (int round = 0; round < 3; ++round)
    for (auto& worker : workers) worker->loop.run_posted();
  for_each_client([](ClientSession& c) { c.close_silently({}); });
  for_each_server([](ServerConnection& s) { s.close({}); });
  for (auto& worker : workers) {
    CancelJob::finish_all(*worker);
    PeerForward::finish_all(*worker);
  }
  for (auto& worker : workers) worker->loop.end_turn();
}

// ------------------------------------------------------------------ registry

Database* Pooler::find_database(std::string_view name, const std::function<std::string()>& log_name) {
  auto it = databases.find(name);
  if (it != databases.end()) return it->second->is_target ? nullptr : it->second.get();
  if (!config->fallback) return nullptr;
  auto made = std::make_unique<Database>(std::string(name));
  auto entry = std::make_shared<DatabaseConfig>(*config->fallback);
  entry->name = name;
  if (entry->dbname.empty()) entry->dbname = name;
  made->config = entry;
  made->is_auto = true;
  made->unused_since = now_us();
  log_line(LogLevel::Log, "%s registered new auto-database: %s", log_name ? log_name().c_str() : "",
           made->name.c_str());
  return databases.emplace(made->name, std::move(made)).first->second.get();
}

User& Pooler::user(std::string_view name) {
  auto it = users.find(name);
  if (it != users.end()) return *it->second;
  auto made = std::make_unique<User>(std::string(name));
  if (auto entry = config->users.find(name); entry != config->users.end()) made->config = entry->second;
  made->config.name = made->name;
  return *users.emplace(made->name, std::move(made)).first->second;
}

Pool& Pooler::pool(Database& database, std::string_view user_name) {
  auto it = database.pools.find(user_name);
  if (it != database.pools.end()) return *it->second;
  auto made = std::make_unique<Pool>(database, user(user_name), workers.size());
  refresh_settings(*made);
  return *database.pools.emplace(made->user.name, std::move(made)).first->second;
}

void Pooler::refresh_settings(Pool& pool) {
  const Options& o = options();
  const DatabaseConfig& d = *pool.database.config;
  const UserConfig& u = pool.user.config;
  PoolSettings& s = pool.settings;
  // A user's time limit of 0 means that it has none of its own.
  auto user_or = [](const std::optional<Micros>& own, Micros global) {
    return own && own->count() > 0 ? own->count() : global.count();
  };
  s.mode = u.pool_mode.value_or(d.pool_mode.value_or(o.pool_mode));
  s.size = u.pool_size.value_or(d.pool_size.value_or(o.default_pool_size));
  s.min_size = d.min_pool_size.value_or(o.min_pool_size);
  s.reserve = u.reserve_pool_size.value_or(d.reserve_pool_size.value_or(o.reserve_pool_size));
  s.max_db_connections = d.max_db_connections.value_or(o.max_db_connections);
  s.max_user_connections = u.max_user_connections.value_or(0) > 0 ? *u.max_user_connections : o.max_user_connections;
  s.server_lifetime = d.server_lifetime.value_or(o.server_lifetime).count();
  s.query_wait_timeout = u.query_wait_timeout.value_or(d.query_wait_timeout.value_or(o.query_wait_timeout)).count();
  s.query_timeout = user_or(u.query_timeout, o.query_timeout);
  s.idle_transaction_timeout = user_or(u.idle_transaction_timeout, o.idle_transaction_timeout);
  s.transaction_timeout = user_or(u.transaction_timeout, o.transaction_timeout);
  if (pool.database.is_console) {
    s.mode = PoolMode::Statement;
    s.size = 2;
  }
}

void Pooler::for_each_pool(const std::function<void(Pool&)>& fn) {
  for (auto& [name, database] : databases)
    for (auto& [user_name, pool] : database->pools) fn(*pool);
}

void Pooler::for_each_server(const std::function<void(ServerConnection&)>& fn) {
  for (auto& worker : workers) worker->servers.for_each([&fn](ServerConnection* s) { fn(*s); });
}

void Pooler::for_each_client(const std::function<void(ClientSession&)>& fn) {
  for (auto& worker : workers) worker->clients.for_each([&fn](ClientSession* c) { fn(*c); });
}

// ------------------------------------------------------------------ configuration

void Pooler::apply_config(ConfigPtr next) {
  config = std::move(next);
  const Options& o = options();
  has_client_idle_timeouts = o.client_idle_timeout.count() > 0;
  for (const auto& [name, entry] : config->users)
    if (entry.client_idle_timeout.value_or(Micros(0)).count() > 0) has_client_idle_timeouts = true;

  if (!databases.contains(kConsoleName)) {
    auto console_db = std::make_unique<Database>(std::string(kConsoleName));
    auto entry = std::make_shared<DatabaseConfig>();
    entry->name = entry->dbname = kConsoleName;
    entry->user = std::string(kConsoleName);
    entry->port = o.listen_port;
    console_db->config = entry;
    console_db->is_console = true;
    databases.emplace(kConsoleName, std::move(console_db));
  }
  for (auto& [name, user] : users) {
    auto entry = config->users.find(name);
    user->config = entry != config->users.end() ? entry->second : UserConfig();
    user->config.name = name;
    user->is_known = false;
  }
  for (const auto& [name, entry] : config->users) user(name).is_known = true;
  for (const auto& [name, secret] : config->userlist->secrets) user(name).is_known = true;

  std::vector<Database*> gone;
  for (auto& [name, database] : databases) {
    if (database->is_console || database->is_target) continue;
    std::shared_ptr<DatabaseConfig> entry;
    if (auto it = config->databases.find(name); it != config->databases.end()) {
      entry = std::make_shared<DatabaseConfig>(it->second);
      database->is_auto = false;
    } else if (database->is_auto && config->fallback) {
      entry = std::make_shared<DatabaseConfig>(*config->fallback);
      entry->name = name;
      if (entry->dbname.empty()) entry->dbname = name;
    } else {
      gone.push_back(database.get());
      continue;
    }
    bool reconnect = !database->config->connects_like(*entry);
    database->config = entry;
    if (reconnect)
      for (auto& [user_name, pool] : database->pools) tag_dirty(*pool);
  }
  for (Database* database : gone) {
    log_line(LogLevel::Warning, "dropping database '%s' as it does not exist anymore or inactive auto-database",
             database->name.c_str());
    drop_database(*database, "database removed");
  }
  for (const auto& [name, entry] : config->databases) {
    if (databases.contains(name)) continue;
    auto made = std::make_unique<Database>(name);
    made->config = std::make_shared<DatabaseConfig>(entry);
    databases.emplace(name, std::move(made));
  }
  for (auto& [name, database] : databases)
    if (database->config->user) user(*database->config->user).is_known = true;
  for_each_pool([this](Pool& pool) { refresh_settings(pool); });
  for (auto& worker : workers) PeerForward::drop_removed(*worker);
  for (auto& worker : workers) worker->resolver->set_ttls(o.dns_max_ttl, o.dns_nxdomain_ttl);
  has_short_limits = find_short_limits();
}

bool Pooler::find_short_limits() {
  const Options& o = options();
  if (has_client_idle_timeouts || o.min_pool_size > 0 || o.server_fast_close) return true;
  auto is_short = [](Micros limit) { return limit.count() > 0 && limit.count() < kLongLimit; };
  for (Micros limit :
       {o.server_idle_timeout, o.server_lifetime, o.autodb_idle_timeout, o.pool_idle_timeout, o.dns_zone_check_period})
    if (is_short(limit)) return true;
  // Limits of working connections are not worth telling apart: where one is set, somebody wants it kept.
  for (Micros limit : {o.query_timeout, o.idle_transaction_timeout, o.transaction_timeout})
    if (limit.count() > 0) return true;
  for (const auto& [name, u] : config->users)
    if (u.query_timeout || u.idle_transaction_timeout || u.transaction_timeout) return true;
  for (const auto& [name, d] : config->databases)
    if (d.min_pool_size.value_or(0) > 0 || (d.server_lifetime && is_short(*d.server_lifetime))) return true;
  return false;
}

void Pooler::tag_dirty(Pool& pool) {
  ++pool.generation;  // those on their way between workers are meant too
  ++pool.changes;
  pool.welcome = nullptr;
  pool.last_connect_failed = 0;
  pool.last_login_error.clear();
  pool.database.server_protocol = ServerProtocol::Unknown;
}

void Pooler::close_everything_of(const Database& database, const char* why) {
  for (const auto& [name, pool] : database.pools) tag_dirty(*pool);
  for_each_client([&](ClientSession& c) {
    bool asks_there = c.is_looked_up() && &c.pool()->database == &database;
    if (c.database() == &database || asks_there) c.close(fatal(why));
  });
  for_each_server([&](ServerConnection& s) {
    if (&s.pool.database == &database) s.close(why);
  });
}

void Pooler::drop_database(Database& database, const char* why) {
  close_everything_of(database, why);
  // Sessions that are told of something by a message under way still look at it: freed when nothing can.
  auto it = databases.find(database.name);
  dropped_.push_back({now_us(), std::move(it->second)});
  databases.erase(it);
}

bool Pooler::servers_gone(const Database* only) const {
  for (const auto& [name, database] : databases) {
    if (database->is_console || (only != nullptr && database.get() != only)) continue;
    for (const auto& [user_name, pool] : database->pools)
      if (pool->server_count > 0) return false;
  }
  return true;
}

// ------------------------------------------------------------------ three times a second

void Pooler::tick() {
  launch_for_waiters(main_worker());
  fill_pools();
  drop_unused(main_worker().loop.now());
  if (on_tick) on_tick();
}

void Pooler::launch_for_waiters(Worker& worker) {
  std::vector<Pool*> pools;
  {
    std::lock_guard guard(lock);
    for_each_pool([&](Pool& p) {
      if (!p.database.is_console && (is_wanted(p) || !p.replicants.empty())) pools.push_back(&p);
    });
  }
  for (Pool* p : pools) launch_if_wanted(*p, worker);
}

// min_pool_size; a pool of a forced user is filled even before its first client.
void Pooler::fill_pools() {
  std::vector<Pool*> pools;
  {
    std::lock_guard guard(lock);
    for (auto& [name, database] : databases) {
      if (database->is_console) continue;
      const auto& forced = database->config->user;
      int wanted = database->config->min_pool_size.value_or(options().min_pool_size);
      if (wanted <= 0) continue;
      if (forced) pool(*database, *forced);
      for (auto& [user_name, p] : database->pools) pools.push_back(p.get());
    }
  }
  for (Pool* p : pools) fill_to_minimum(*p, main_worker());
}

// Databases made from "*", and pools, that nobody has used for long.
void Pooler::drop_unused(std::int64_t now) {
  std::vector<Database*> idle_databases;
  std::vector<Pool*> idle_pools;
  std::int64_t pool_limit = options().pool_idle_timeout.count();
  std::int64_t auto_limit = options().autodb_idle_timeout.count();
  {
    std::lock_guard guard(lock);
    for (auto& [name, database] : databases) {
      bool in_use = database->client_count > 0 || database->server_count > 0;
      for (const auto& [user_name, p] : database->pools)
        in_use = in_use || p->client_count > 0 || !p->waiters.empty();  // auth_query's
      if (in_use) {
        database->unused_since = 0;
      } else if (database->unused_since == 0) {
        database->unused_since = now;
      } else if ((database->is_auto || database->is_target) && auto_limit > 0 &&
                 now - database->unused_since > auto_limit) {
        idle_databases.push_back(database.get());
      }
      for (auto& [user_name, p] : database->pools) {
        if (p->client_count > 0 || p->server_count > 0 || !p->waiters.empty())
          p->unused_since = 0;
        else if (p->unused_since == 0)
          p->unused_since = now;
        else if (pool_limit > 0 && now - p->unused_since > pool_limit && !database->is_console &&
                 !(database->config->user && p->settings.min_size > 0))
          idle_pools.push_back(p.get());
      }
    }
    std::erase_if(dropped_, [now](const Dropped& d) { return now - d.when > kDroppedKept; });
    std::erase_if(dropped_pools_, [now](const DroppedPool& d) { return now - d.when > kDroppedKept; });
  }
  if (idle_databases.empty() && idle_pools.empty()) return;
  run_alone([&] {
    for (Pool* p : idle_pools) drop_pool(*p, now);
    for (Database* d : idle_databases) {
      log_line(LogLevel::Warning, "dropping database '%s' as it does not exist anymore or inactive auto-database",
               d->name.c_str());
      if (d->client_count == 0 && d->server_count == 0) drop_database(*d, "database removed");
    }
  });
}

void Pooler::drop_pool(Pool& pool, std::int64_t now) {
  if (pool.client_count > 0 || pool.server_count > 0) return;
  log_line(LogLevel::Log, "cleaning up idle pool for user %s on db %s because: pool idle timeout (age= %llds)",
           pool.user.name.c_str(), pool.database.name.c_str(),
           static_cast<long long>((now - pool.unused_since) / 1000000));
  auto it = pool.database.pools.find(pool.user.name);
  dropped_pools_.push_back({now, std::move(it->second)});
  it->second = nullptr;
  pool.database.pools.erase(it);
}

}  // namespace lokadb
