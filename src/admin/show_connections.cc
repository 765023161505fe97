// SHOW CLIENTS, SERVERS, SOCKETS and ACTIVE_SOCKETS: a line a connection.
#include <algorithm>
#include <ctime>
#include <vector>

#include "admin/show.h"
#include "base/clock.h"
#include "base/text.h"
#include "net/socket.h"
#include "net/tls.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

std::string time_text(std::int64_t wall) {
  time_t seconds = wall / 1000000;
  tm parts;
  localtime_r(&seconds, &parts);
  char text[48];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &parts);
  return text;
}

std::string pointer_text(const void* p) { return format("%p", p); }

std::string tls_text(Stream& stream) { return stream.ssl() != nullptr ? describe(stream.ssl()) : std::string(); }

std::string application_name(const ParameterSetPtr& set) {
  if (!set) return {};
  return set->values()[TrackedNames::kApplicationName].value_or("");
}

std::string_view replication_word(const ClientSession* c) {
  if (c == nullptr || c->replication() == nullptr) return "none";
  return c->replication()->mode == ReplicationMode::Logical ? "logical" : "physical";
}

// PgBouncer's words for what a connection is doing.
std::string_view client_word(ClientSession& c, bool as_socket) {
  switch (c.state()) {
    case ClientState::Startup:
    case ClientState::Login:
    case ClientState::Checking:
      return "cl_login";
    case ClientState::UserWanted:
    case ClientState::UserAsked:
    case ClientState::Welcome:
    case ClientState::Waiting:
      return as_socket ? "cl_waiting" : "waiting";
    case ClientState::Idle:
      return as_socket ? "cl_active" : "idle";
    case ClientState::Active:
      if (!as_socket && c.is_linked() && c.leg().server->is_pinned()) return "pinned";  // not a word of PgBouncer's
      [[fallthrough]];
    default:
      return as_socket ? "cl_active" : "active";
  }
}

std::string_view server_word(ServerConnection& s, bool as_socket, std::int64_t now) {
  switch (s.state()) {
    case ServerState::Login:
      return as_socket ? "sv_login" : "new";
    case ServerState::Testing:
      return as_socket ? "sv_tested" : "tested";
    case ServerState::BeingCanceled:
      return as_socket ? "sv_being_canceled" : "being_canceled";
    case ServerState::Idle:
    case ServerState::Moving:
      if (now - s.idle_since > s.pooler.options().server_check_delay.count()) return as_socket ? "sv_used" : "used";
      return as_socket ? "sv_idle" : "idle";
    default:
      return as_socket ? "sv_active" : "active";
  }
}

void add_local(ResultTable::Row& row, Stream& stream, int unix_port) {
  SocketAddress local = stream.is_open() ? local_address(stream.fd()) : SocketAddress();
  if (local.is_unix() || local.empty())
    row.text("unix").number(unix_port);
  else
    row.text(ip_text(local)).number(local.port());
}

void add_socket_columns(ResultTable::Row& row, Stream& stream) {
  auto backlog = static_cast<std::int64_t>(stream.backlog_size());
  row.number(0).number(0).number(0).number(0).number(backlog).number(0).number(backlog);
}

void add_client(ClientSession& c, ResultTable& table, bool as_socket) {
  std::int64_t waited = c.wait_started != 0 ? now_us() - c.wait_started : 0;
  auto& row = table.add_row();
  row.text("C");
  row.text(c.user() != nullptr ? c.user()->name : "(nouser)");
  row.text(c.database() != nullptr ? c.database()->name : "(nodb)");
  row.text(replication_word(&c)).text(client_word(c, as_socket));
  row.text(c.peer().is_unix() ? "unix" : ip_text(c.peer())).number(c.peer_port());
  add_local(row, c.stream(), c.pooler.options().listen_port);
  row.text(time_text(c.connect_time)).text(time_text(c.request_time));
  row.number(waited / 1000000).number(waited % 1000000).number(0);
  row.text(pointer_text(&c)).text(c.is_linked() ? pointer_text(c.leg().server) : "");
  row.number(c.unix_peer_pid()).text(tls_text(c.stream())).text(application_name(c.parameters()));
  row.number(static_cast<std::int64_t>(c.statements().size())).number(static_cast<std::int64_t>(c.id));
  if (as_socket) add_socket_columns(row, c.stream());
}

void add_server(ServerConnection& s, ResultTable& table, bool as_socket) {
  auto& row = table.add_row();
  row.text("S").text(s.pool.user.name).text(s.pool.database.name);
  row.text(replication_word(s.is_dedicated() ? s.client() : nullptr));
  row.text(server_word(s, as_socket, now_us()));
  bool is_unix = s.address().is_unix() || s.address().empty();
  row.text(is_unix ? "unix" : ip_text(s.address()));
  row.number(is_unix ? s.pool.database.config->port : s.address().port());
  add_local(row, s.stream(), s.pooler.options().listen_port);
  row.text(time_text(s.connect_time)).text(time_text(s.request_time));
  row.number(0).number(0).number(s.is_obsolete() ? 1 : 0);
  row.text(pointer_text(&s)).text(s.client() != nullptr ? pointer_text(s.client()) : "");
  row.number(static_cast<std::int32_t>(s.backend_pid())).text(tls_text(s.stream()));
  row.text(application_name(s.parameters())).number(static_cast<std::int64_t>(s.prepared_count()));
  row.number(static_cast<std::int64_t>(s.id));
  if (as_socket) add_socket_columns(row, s.stream());
}

// In the order of pools: by database, then user; then by state.
template <class T>
std::vector<T*> sorted(std::vector<T*> all) {
  auto key = [](T* x) {
    Pool* p;
    if constexpr (std::is_same_v<T, ClientSession>)
      p = x->pool();
    else
      p = &x->pool;
    return std::make_tuple(p != nullptr ? p->database.name : "", p != nullptr ? p->user.name : "", x->state(), x->id);
  };
  std::sort(all.begin(), all.end(), [&key](T* a, T* b) { return key(a) < key(b); });
  return all;
}

std::vector<ClientSession*> clients_of(Pooler& pooler, bool with_logins) {
  std::vector<ClientSession*> all;
  pooler.for_each_client([&](ClientSession& c) {
    if (with_logins || c.state() > ClientState::Checking) all.push_back(&c);
  });
  return sorted(std::move(all));
}

std::vector<ServerConnection*> servers_of(Pooler& pooler) {
  std::vector<ServerConnection*> all;
  pooler.for_each_server([&](ServerConnection& s) { all.push_back(&s); });
  return sorted(std::move(all));
}

}  // namespace

void show_clients(Pooler& pooler, ResultTable& table) {
  for (ClientSession* c : clients_of(pooler, false)) add_client(*c, table, false);
}

void show_servers(Pooler& pooler, ResultTable& table) {
  for (ServerConnection* s : servers_of(pooler)) add_server(*s, table, false);
}

void show_sockets(Pooler& pooler, ResultTable& table) {
  for (ClientSession* c : clients_of(pooler, true)) add_client(*c, table, true);
  for (ServerConnection* s : servers_of(pooler)) add_server(*s, table, true);
}

void show_active_sockets(Pooler& pooler, ResultTable& table) {
  for (ClientSession* c : clients_of(pooler, true))
    if (c->stream().backlog_size() > 0) add_client(*c, table, true);
  for (ServerConnection* s : servers_of(pooler))
    if (s->stream().backlog_size() > 0) add_server(*s, table, true);
}

}  // namespace lokadb
