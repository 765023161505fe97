#include "pool/backend_call.h"

#include <charconv>

#include "base/text.h"
#include "pool/sql_lexer.h"
#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::uint32_t kMostNumber = 0x7fffffff;

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || number > kMostNumber)
    return std::nullopt;
  return number;
}

std::string_view function_name(const BackendCall& call) {
  return call.terminates ? "pg_terminate_backend" : "pg_cancel_backend";
}

// Where the value stands in a Bind with one parameter.
struct BoundValue {
  std::size_t length_at = 0;
  std::size_t size = 0;
  bool is_binary = false;
};

std::optional<BoundValue> bound_value(Bytes body) {
  MessageReader reader(body);
  auto at = [&] { return body.size() - reader.rest().size(); };
  reader.cstring();
  reader.cstring();
  BoundValue value;
  unsigned formats = reader.u16();
  if (formats > 1) return std::nullopt;
  if (formats == 1) value.is_binary = reader.u16() == 1;
  if (reader.u16() != 1) return std::nullopt;
  value.length_at = at();
  value.size = reader.u32();
  if (!reader.ok() || value.size > 20 || reader.rest().size() < value.size) return std::nullopt;
  return value;
}

}  // namespace

bool may_be_backend_call(std::string_view sql) {
  sql = without_blanks(sql);
  constexpr std::size_t kSelect = 6;
  if (sql.size() < kSelect + 4 || !is_space(sql[kSelect]) || !iequals(sql.substr(0, kSelect), "select")) return false;
  sql.remove_prefix(kSelect);
  while (!sql.empty() && is_space(sql.front())) sql.remove_prefix(1);
  return sql.size() > 4 && iequals(sql.substr(0, 3), "pg_") && (lower(sql[3]) == 'c' || lower(sql[3]) == 't');
}

std::optional<BackendCall> backend_call(std::string_view sql) {
  SqlLexer lexer(sql);
  if (!lexer.next().is("select")) return std::nullopt;
  Token token = lexer.next();
  if (token.names("pg_catalog")) {
    if (!lexer.next().is_symbol('.')) return std::nullopt;
    token = lexer.next();
  }
  BackendCall call;
  call.terminates = token.names("pg_terminate_backend");
  if (!call.terminates && !token.names("pg_cancel_backend")) return std::nullopt;
  if (!lexer.next().is_symbol('(')) return std::nullopt;
  token = lexer.next();
  bool is_parameter = token.kind == Token::Kind::Other && token.text == "$1";
  if (token.is_name() || (!is_parameter && !(call.number = to_number(token.text)))) return std::nullopt;
  token = lexer.next();
  if (token.is_symbol(':') && lexer.next().is_symbol(':')) {
    token = lexer.next();
    if (!token.is("int") && !token.is("int4") && !token.is("integer")) return std::nullopt;
    token = lexer.next();
  }
  if (!token.is_symbol(')')) return std::nullopt;
  token = lexer.next();
  if (token.is_symbol(';')) token = lexer.next();
  return token.kind == Token::Kind::End && !lexer.is_doubtful() ? std::optional(call) : std::nullopt;
}

std::string done_instead(const BackendCall& call) {
  std::string name(function_name(call));
  if (call.number) return "SELECT true AS " + name;
  return "SELECT CASE WHEN $1::int4 < 0 THEN true ELSE pg_catalog." + name + "($1::int4) END AS " + name;
}

std::optional<std::uint32_t> bound_number(Bytes body) {
  auto value = bound_value(body);
  if (!value) return std::nullopt;
  Bytes bytes = body.subspan(value->length_at + 4, value->size);
  if (!value->is_binary) return to_number(as_text(bytes));
  if (value->size != 4 && value->size != 8) return std::nullopt;
  if (value->size == 8 && load_u32(bytes.data()) != 0) return std::nullopt;
  std::uint32_t number = load_u32(bytes.data() + value->size - 4);
  return number <= kMostNumber ? std::optional(number) : std::nullopt;
}

std::string with_negative_number(Bytes body) {
  auto value = bound_value(body);
  std::string out(as_text(body).substr(0, value->length_at));
  auto add_u32 = [&out](std::uint32_t number) {
    std::byte bytes[4];
    store_u32(bytes, number);
    out += as_text(bytes);
  };
  std::string_view rest = as_text(body).substr(value->length_at + 4);
  if (value->is_binary) {
    add_u32(static_cast<std::uint32_t>(value->size));
    for (std::size_t i = 0; i < value->size; i += 4) add_u32(0xffffffff);
  } else {
    add_u32(2);
    out += "-1";
  }
  out += rest.substr(value->size);
  return out;
}

}  // namespace lokadb
