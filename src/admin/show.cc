#include "admin/show.h"

#include <algorithm>
#include <map>

#include "admin/show_fds.h"
#include "base/text.h"
#include "build_config.h"
#include "pool/client_session.h"
#include "pool/peer_forward.h"
#include "pool/pooler.h"
#include "pool/prepared.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

#define LOKADB_CONNECTION_COLUMNS                                                                           \
  "type t, user t, database t, replication t, state t, addr t, port i, local_addr t, local_port i, "        \
  "connect_time t, request_time t, wait i, wait_us i, close_needed i, ptr t, link t, remote_pid i, tls t, " \
  "application_name t, prepared_statements i, id i"
#define LOKADB_SOCKET_COLUMNS \
  LOKADB_CONNECTION_COLUMNS   \
  ", recv_pos i, pkt_pos i, pkt_remain i, send_pos i, send_remain i, pkt_avail i, send_avail i"

void show_config(Pooler& pooler, ResultTable& table) {
  for (const OptionLine& line : option_lines(pooler.options()))
    table.add_row().text(line.key).maybe(line.value).maybe(line.fallback).text(line.changeable ? "yes" : "no");
}

void show_version(Pooler&, ResultTable& table) { table.add_row().text(version_text()); }

void show_state(Pooler& pooler, ResultTable& table) {
  auto yes_no = [](bool b) { return b ? "yes" : "no"; };
  table.add_row().text("active").text(yes_no(pooler.pause_mode == PauseMode::None));
  table.add_row().text("paused").text(yes_no(pooler.pause_mode == PauseMode::Paused));
  table.add_row().text("suspended").text(yes_no(pooler.pause_mode == PauseMode::Suspended));
}

void show_mem(Pooler& pooler, ResultTable& table) {
  std::int64_t clients = 0, servers = 0, pools = 0;
  pooler.for_each_client([&](ClientSession&) { ++clients; });
  pooler.for_each_server([&](ServerConnection&) { ++servers; });
  pooler.for_each_pool([&](Pool&) { ++pools; });
  auto line = [&table](std::string_view name, std::size_t size, std::int64_t used) {
    table.add_row()
        .text(name)
        .number(static_cast<std::int64_t>(size))
        .number(used)
        .number(0)
        .number(static_cast<std::int64_t>(size) * used);
  };
  line("user_cache", sizeof(User), static_cast<std::int64_t>(pooler.users.size()));
  line("db_cache", sizeof(Database), static_cast<std::int64_t>(pooler.databases.size()));
  line("pool_cache", sizeof(Pool), pools);
  line("client_cache", sizeof(ClientSession), clients);
  line("server_cache", sizeof(ServerConnection), servers);
  auto statements = static_cast<std::int64_t>(interned_statement_count());
  auto bytes = static_cast<std::int64_t>(interned_statement_bytes());
  table.add_row()
      .text("prepared_statement_cache")
      .number(statements > 0 ? bytes / statements : 0)
      .number(statements)
      .number(0)
      .number(bytes);
}

void show_dns_hosts(Pooler& pooler, ResultTable& table) {
  for (auto& worker : pooler.workers) {
    for (const auto& entry : worker->resolver->entries()) {
      std::string addresses;
      for (const auto& address : entry.addresses) addresses += (addresses.empty() ? "" : ",") + to_text(address);
      table.add_row().text(entry.name).number(entry.seconds_left).text(addresses);
    }
  }
}

// Each worker has a resolver of its own.
void show_dns_zones(Pooler& pooler, ResultTable& table) {
  std::map<std::string, DnsResolver::ZoneEntry> all;
  for (auto& worker : pooler.workers)
    for (const auto& zone : worker->resolver->zones()) {
      auto [it, is_new] = all.emplace(zone.name, zone);
      if (!is_new) it->second.names = std::max(it->second.names, zone.names);
    }
  for (const auto& [name, zone] : all)
    table.add_row().text(name).number(zone.serial).number(static_cast<std::int64_t>(zone.names));
}

void show_nothing(Pooler&, ResultTable&) {}

void show_peer_pools(Pooler& pooler, ResultTable& table) {
  struct Counts {
    int waiting = 0, connecting = 0, sent = 0;
  };
  std::map<int, Counts> counts;
  for (auto& worker : pooler.workers)
    worker->forwards.for_each([&](PeerForward* f) {
      Counts& n = counts[f->peer_id()];
      ++(f->stage() == PeerForward::Stage::Sent ? n.sent : n.waiting);
      if (f->stage() == PeerForward::Stage::Connecting) ++n.connecting;
    });
  for (const auto& [id, peer] : pooler.config->peers) {
    const Counts& n = counts[id];
    table.add_row().number(id).number(n.sent).number(n.waiting).number(n.sent).number(n.connecting);
  }
}

void show_peers(Pooler& pooler, ResultTable& table) {
  for (const auto& [id, peer] : pooler.config->peers)
    table.add_row().number(id).text(peer.host).number(peer.port).number(
        peer.pool_size.value_or(pooler.options().default_pool_size));
}

constexpr ShowSpec kShows[] = {
    {"active_sockets", LOKADB_SOCKET_COLUMNS, show_active_sockets, false},
    {"clients", LOKADB_CONNECTION_COLUMNS, show_clients, false},
    {"config", "key t, value t, default t, changeable t", show_config, false},
    {"databases",
     "name t, host t, port i, database t, force_user t, pool_size i, min_pool_size i, reserve_pool_size i, "
     "server_lifetime i, pool_mode t, load_balance_hosts t, max_connections i, current_connections i, "
     "max_client_connections i, current_client_connections i, paused i, disabled i",
     show_databases, false},
    {"dns_hosts", "hostname t, ttl q, addrs t", show_dns_hosts, false},
    {"dns_zones", "zonename t, serial q, count i", show_dns_zones, false},
    {"fds", kFdsColumns, show_nothing, true},  // filled by the console, which knows the listening sockets
    {"lists", "list t, items i", show_lists, false},
    {"lokadb_reasons", "plugin t, reason t, text t", show_reasons, false},
    {"lokadb_routes", "plugin t, reason t, count q, text t", show_routes, false},
    {"lokadb_sessions",
     "user t, database t, addr t, port i, ptr t, id i, plugin t, direct t, reason t, text t, details t",
     show_plugin_sessions, false},
    {"mem", "name t, size i, used i, free i, memtotal i", show_mem, false},
    {"peer_pools", "peer_id i, cl_active_cancel_req i, cl_waiting_cancel_req i, sv_active_cancel i, sv_login i",
     show_peer_pools, false},
    {"peers", "peer_id i, host t, port i, pool_size i", show_peers, false},
    {"plugins",
     "name t, version t, interface t, library t, required i, calls q, refused q, failed q, slow q, total_us q, max_us "
     "q, "
     "reasons t",
     show_plugins, false},
    {"pools",
     "database t, user t, cl_active i, cl_waiting i, cl_active_cancel_req i, cl_waiting_cancel_req i, sv_active i, "
     "sv_active_cancel i, sv_being_canceled i, sv_idle i, sv_used i, sv_tested i, sv_login i, maxwait i, "
     "maxwait_us i, pool_mode t, load_balance_hosts t",
     show_pools, false},
    {"servers", LOKADB_CONNECTION_COLUMNS, show_servers, false},
    {"sockets", LOKADB_SOCKET_COLUMNS, show_sockets, false},
    {"state", "key t, value t", show_state, false},
    // The columns of these three are made from the table of counters.
    {"stats", "", show_stats, false},
    {"stats_averages", "", show_stats_averages, false},
    {"stats_totals", "", show_stats_totals, false},
    {"totals", "name t, value n", show_totals, false},
    {"users",
     "name t, pool_size t, reserve_pool_size t, pool_mode t, max_user_connections i, current_connections i, "
     "max_user_client_connections i, current_client_connections i",
     show_users, false},
    {"version", "version t", show_version, false},
};

}  // namespace

// Exactly PgBouncer's form: its test-suite and monitors compare it.
std::string_view version_text() { return "PgBouncer 1.25.2"; }

std::string_view own_version_text() { return "lokadb-proxy " PACKAGE_VERSION; }

std::span<const ShowSpec> show_specs() { return kShows; }

const ShowSpec* find_show(std::string_view name) {
  for (const auto& spec : kShows)
    if (iequals(spec.name, name)) return &spec;
  return nullptr;
}

}  // namespace lokadb
