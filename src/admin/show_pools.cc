// SHOW POOLS, DATABASES, USERS and LISTS.
#include <set>

#include "admin/show.h"
#include "base/clock.h"
#include "base/text.h"
#include "pool/cancel.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

// NULL unless the entry names several hosts: only then there is something to balance.
std::optional<std::string> balancing_of(const DatabaseConfig& config) {
  if (config.hosts.size() < 2) return std::nullopt;
  return std::string(name_of(config.load_balance_hosts));
}

struct PoolCounts {
  int cl_active = 0, cl_waiting = 0, cl_active_cancel = 0, cl_waiting_cancel = 0;
  int sv_active = 0, sv_being_canceled = 0, sv_idle = 0, sv_used = 0, sv_tested = 0, sv_login = 0;
  std::int64_t oldest_wait = 0;  // microseconds
};

std::map<const Pool*, PoolCounts> count_all(Pooler& pooler) {
  std::map<const Pool*, PoolCounts> counts;
  std::int64_t now = now_us();
  std::int64_t used_after = pooler.options().server_check_delay.count();
  pooler.for_each_client([&](ClientSession& c) {
    if (c.pool() == nullptr || c.state() <= ClientState::Checking) return;
    PoolCounts& n = counts[c.pool()];
    bool waits = c.waits_for_server() || c.state() == ClientState::Welcome;
    ++(waits ? n.cl_waiting : n.cl_active);
    if (waits && c.wait_started != 0) n.oldest_wait = std::max(n.oldest_wait, now - c.wait_started);
  });
  pooler.for_each_server([&](ServerConnection& s) {
    PoolCounts& n = counts[&s.pool];
    switch (s.state()) {
      case ServerState::Login:
        ++n.sv_login;
        break;
      case ServerState::Testing:
        ++n.sv_tested;
        break;
      case ServerState::BeingCanceled:
        ++n.sv_being_canceled;
        break;
      case ServerState::Active:
        ++n.sv_active;
        break;
      default:
        ++(now - s.idle_since > used_after ? n.sv_used : n.sv_idle);
    }
  });
  for (auto& worker : pooler.workers)
    worker->cancels.for_each([&](CancelJob* job) {
      PoolCounts& n = counts[&job->pool()];
      ++(job->is_waiting() ? n.cl_waiting_cancel : n.cl_active_cancel);
    });
  return counts;
}

std::string size_text(const std::optional<int>& size) { return size ? format("%9d", *size) : std::string(); }

}  // namespace

void show_pools(Pooler& pooler, ResultTable& table) {
  auto counts = count_all(pooler);
  {
    std::lock_guard guard(pooler.lock);
    pooler.pool(*pooler.find_database("pgbouncer"), "pgbouncer");
  }
  pooler.for_each_pool([&](Pool& p) {
    const PoolCounts& n = counts[&p];
    table.add_row()
        .text(p.database.name)
        .text(p.user.name)
        .number(n.cl_active)
        .number(n.cl_waiting)
        .number(n.cl_active_cancel)
        .number(n.cl_waiting_cancel)
        .number(n.sv_active)
        .number(n.cl_active_cancel)
        .number(n.sv_being_canceled)
        .number(n.sv_idle)
        .number(n.sv_used)
        .number(n.sv_tested)
        .number(n.sv_login)
        .number(n.oldest_wait / 1000000)
        .number(n.oldest_wait % 1000000)
        .text(name_of(p.settings.mode))
        .maybe(balancing_of(*p.database.config));
  });
}

void show_databases(Pooler& pooler, ResultTable& table) {
  const Options& o = pooler.options();
  for (const auto& [name, database] : pooler.databases) {
    if (database->is_auto && database->client_count == 0 && database->server_count == 0) continue;
    const DatabaseConfig& c = *database->config;
    std::string hosts;
    for (const auto& host : c.hosts) hosts += (hosts.empty() ? "" : ",") + host;
    auto& row = table.add_row();
    row.text(name);
    row.maybe(hosts.empty() ? std::nullopt : std::optional(hosts)).number(c.port);
    row.text(c.dbname.empty() ? name : c.dbname).maybe(c.user);
    row.number(database->is_console ? 2 : c.pool_size.value_or(o.default_pool_size));
    row.number(c.min_pool_size.value_or(o.min_pool_size)).number(c.reserve_pool_size.value_or(o.reserve_pool_size));
    row.number(c.server_lifetime.value_or(o.server_lifetime).count() / 1000000);
    if (database->is_console)
      row.text("statement");
    else if (c.pool_mode)
      row.text(name_of(*c.pool_mode));
    else
      row.null();
    row.maybe(balancing_of(c));
    row.number(c.max_db_connections.value_or(o.max_db_connections)).number(database->server_count);
    row.number(c.max_db_client_connections.value_or(o.max_db_client_connections)).number(database->client_count);
    row.number(database->is_paused ? 1 : 0).number(database->is_disabled ? 1 : 0);
  }
}

void show_users(Pooler& pooler, ResultTable& table) {
  const Options& o = pooler.options();
  for (const auto& [name, user] : pooler.users) {
    if (!user->is_known) continue;
    const UserConfig& c = user->config;
    auto& row = table.add_row();
    row.text(name).text(size_text(c.pool_size)).text(size_text(c.reserve_pool_size));
    if (c.pool_mode)
      row.text(name_of(*c.pool_mode));
    else
      row.null();
    auto limit = [](const std::optional<int>& own, int global) { return own.value_or(0) > 0 ? *own : global; };
    row.number(limit(c.max_user_connections, o.max_user_connections)).number(user->server_count);
    row.number(limit(c.max_user_client_connections, o.max_user_client_connections)).number(user->client_count);
  }
}

void show_lists(Pooler& pooler, ResultTable& table) {
  std::int64_t pools = 0, users = 0, clients = 0, logins = 0, servers = 0, names = 0, lookups = 0;
  std::set<std::string> zones;
  pooler.for_each_pool([&](Pool&) { ++pools; });
  for (const auto& [name, user] : pooler.users) users += user->is_known ? 1 : 0;
  pooler.for_each_client([&](ClientSession& c) { ++(c.state() <= ClientState::Checking ? logins : clients); });
  pooler.for_each_server([&](ServerConnection&) { ++servers; });
  for (auto& worker : pooler.workers) {
    names += static_cast<std::int64_t>(worker->resolver->name_count());
    lookups += static_cast<std::int64_t>(worker->resolver->lookup_count());
    for (const auto& zone : worker->resolver->zones()) zones.insert(zone.name);
  }
  auto line = [&table](std::string_view name, std::int64_t n) { table.add_row().text(name).number(n); };
  line("databases", static_cast<std::int64_t>(pooler.databases.size()));
  line("users", users);
  line("peers", static_cast<std::int64_t>(pooler.config->peers.size()));
  line("pools", pools);
  line("peer_pools", static_cast<std::int64_t>(pooler.config->peers.size()));
  // Free are what PgBouncer keeps of those that are gone, to use the memory again; used are all that there are.
  line("free_clients", 0);
  line("used_clients", clients);
  line("login_clients", logins);
  line("free_servers", 0);
  line("used_servers", servers);
  line("dns_names", names);
  line("dns_zones", static_cast<std::int64_t>(zones.size()));
  line("dns_queries", lookups);
  line("dns_pending", 0);
}

}  // namespace lokadb
