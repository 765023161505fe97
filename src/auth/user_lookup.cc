#include "auth/user_lookup.h"

#include "config/options.h"
#include "config/userlist.h"
#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::string_view kQualifiedQuery =
    "SELECT rolname, CASE WHEN rolvaliduntil OPERATOR(pg_catalog.<) pg_catalog.now() THEN NULL ELSE rolpassword END "
    "FROM pg_catalog.pg_authid WHERE rolname OPERATOR(pg_catalog.=) $1 AND rolcanlogin";

constexpr std::uint32_t kNull = 0xffffffff;

Error unexpected() { return fatal("unexpected response from auth_query"); }

// One value of a DataRow; nullopt: NULL, or `reader` has failed.
std::optional<std::string> read_value(MessageReader& reader) {
  std::uint32_t size = reader.u32();
  if (!reader.ok() || size == kNull) return std::nullopt;
  return std::string(as_text(reader.take(size)));
}

}  // namespace

void UserLookup::write_request(ByteBuffer& out) const {
  {
    MessageWriter m(out, 'P');
    m->cstring("");
    m->cstring(query_);
    m->u16(0);
  }
  {
    MessageWriter m(out, 'B');
    m->cstring("");
    m->cstring("");
    m->u16(0);  // all parameters are text
    m->u16(1);
    m->u32(static_cast<std::uint32_t>(user_.size()));
    m->text(user_);
    m->u16(0);  // and all results
  }
  {
    MessageWriter m(out, 'D');
    m->u8('P');
    m->cstring("");
  }
  {
    MessageWriter m(out, 'E');
    m->cstring("");
    m->u32(0);  // all rows
  }
  MessageWriter(out, 'S');
}

Result<Done> UserLookup::on_answer(char type, Bytes body) {
  switch (type) {
    case '1':
    case '2':
    case 'C':
      return Done{};
    case 'T':
      return read_columns(body);
    case 'D':
      return read_row(body);
    default:
      return unexpected();
  }
}

Result<Done> UserLookup::read_columns(Bytes body) {
  MessageReader reader(body);
  unsigned count = reader.u16();
  if (!reader.ok()) return unexpected();
  if (count != 2) return fatal("expected 2 columns from auth_query, not " + std::to_string(count));
  has_columns_ = true;
  return Done{};
}

Result<Done> UserLookup::read_row(Bytes body) {
  MessageReader reader(body);
  unsigned count = reader.u16();
  if (!has_columns_ || count != 2) return unexpected();
  auto name = read_value(reader);
  auto secret = read_value(reader);
  if (!reader.finished()) return unexpected();
  if (!name || name->empty()) return fatal("auth_query response contained null user name");
  FoundUser user{name->substr(0, kLongestUserName), secret.value_or("")};
  if (user.secret.size() > kLongestPassword) return unexpected();
  // Of two different answers neither can be trusted.
  if (found_ && (found_->name != user.name || found_->secret != user.secret)) return unexpected();
  found_ = std::move(user);
  return Done{};
}

std::string_view safe_auth_query(std::string_view configured) {
  static const std::string kDefault = default_options().auth_query;
  return configured == kDefault ? kQualifiedQuery : configured;
}

}  // namespace lokadb
