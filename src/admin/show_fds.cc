#include "admin/show_fds.h"

#include "base/text.h"
#include "net/descriptor_passing.h"
#include "net/socket.h"
#include "pool/client_session.h"
#include "pool/handover.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

std::string hex(Bytes bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned>(b) >> 4];
    out += kDigits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

// As PostgreSQL prints bytea.
std::optional<std::string> key_text(const std::optional<ScramKeys>& keys, ScramKey ScramKeys::*which) {
  if (!keys) return std::nullopt;
  return "\\x" + hex((*keys).*which);
}

std::int64_t cancel_number(Bytes key) {
  if (key.size() < 8) return 0;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(load_u32(key.data())) << 32 | load_u32(key.data() + 4));
}

void add_parameters(ResultTable::Row& row, const ParameterSetPtr& set) {
  for (std::size_t i : {TrackedNames::kClientEncoding, TrackedNames::kStandardStrings, TrackedNames::kDateStyle,
                        TrackedNames::kTimeZone})
    row.maybe(set ? set->values()[i] : std::nullopt);
}

void add_secrets(ResultTable::Row& row, const Pool& pool) {
  row.maybe(pool.looked_up_secret.empty() ? std::nullopt : std::optional(pool.looked_up_secret));
  const auto& keys = pool.user.scram_keys ? pool.user.scram_keys : pool.looked_up_keys;
  row.maybe(key_text(keys, &ScramKeys::client_key)).maybe(key_text(keys, &ScramKeys::server_key));
}

// Calls add(fd, row to fill, state) for everything there is to tell.
template <class Add>
void each_socket(Pooler& pooler, const std::vector<ListeningSocket>& listening, Add&& add) {
  for (const auto& socket : listening) {
    ResultTable::Row& row = add(socket.fd, [] { return std::string("pooler"); });
    SocketAddress address = local_address(socket.fd);
    row.number(socket.fd).text("pooler").null().null();
    row.text(socket.is_unix ? "unix" : ip_text(address));
    row.number(socket.is_unix ? pooler.options().listen_port : address.port()).number(0).number(0);
    for (int i = 0; i < 7; ++i) row.null();
  }
  pooler.for_each_client([&](ClientSession& c) {
    if (!Handover::may_move(c)) return;
    ResultTable::Row& row = add(c.stream().fd(), [&c] { return Handover::state_of(c); });
    row.number(c.stream().fd()).text("client");
    row.maybe(c.user() != nullptr ? std::optional(c.user()->name) : std::nullopt);
    row.maybe(c.database() != nullptr ? std::optional(c.database()->name) : std::nullopt);
    row.text(c.peer().is_unix() ? "unix" : ip_text(c.peer())).number(c.peer_port());
    row.number(cancel_number(c.cancel_key().bytes())).number(c.is_linked() ? c.leg().server->stream().fd() : 0);
    add_parameters(row, c.parameters());
    if (c.pool() != nullptr)
      add_secrets(row, *c.pool());
    else
      row.null().null().null();
  });
  pooler.for_each_server([&](ServerConnection& s) {
    if (!Handover::may_move(s)) return;
    ResultTable::Row& row = add(s.stream().fd(), [&s] { return Handover::state_of(s); });
    bool is_unix = s.address().is_unix();
    row.number(s.stream().fd()).text("server").text(s.pool.user.name).text(s.pool.database.name);
    row.text(is_unix ? "unix" : ip_text(s.address()));
    row.number(is_unix ? s.pool.database.config->port : s.address().port());
    row.number(cancel_number(s.cancel_key())).number(s.client() != nullptr ? s.client()->stream().fd() : 0);
    add_parameters(row, s.parameters());
    add_secrets(row, s.pool);
  });
}

}  // namespace

void show_fds(Pooler& pooler, const std::vector<ListeningSocket>& listening, ResultTable& table) {
  each_socket(pooler, listening, [&table](int, auto&&) -> ResultTable::Row& { return table.add_row(); });
}

bool hand_over_fds(Pooler& pooler, const std::vector<ListeningSocket>& listening, ClientSession& successor) {
  std::string columns = std::string(kFdsColumns) + ", state t";
  struct Row {
    int fd;
    std::string state;
    ResultTable table;
  };
  std::vector<std::unique_ptr<Row>> rows;
  each_socket(pooler, listening, [&](int fd, auto&& state) -> ResultTable::Row& {
    rows.push_back(std::make_unique<Row>(Row{fd, hex(as_bytes(state())), ResultTable(columns)}));
    return rows.back()->table.add_row();
  });
  ByteBuffer description;
  ResultTable(columns).write_description(description);
  Stream& stream = successor.stream();
  stream.send_copy(description.bytes());
  stream.flush();
  if (stream.has_unsent()) return false;
  for (auto& row : rows) {
    row->table.last_row().text(row->state);
    ByteBuffer out;
    row->table.write_rows(out);
    if (!send_with_descriptor(stream.fd(), out.bytes(), row->fd)) return false;
  }
  return true;
}

}  // namespace lokadb
