#include "catalog/value.h"

#include <charconv>
#include <limits>

#include "base/text.h"

namespace lokadb::catalog {

namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> integer_in(ValueType type, std::optional<std::int64_t> value) {
  using Narrow = std::numeric_limits<std::int32_t>;
  if (!value || (type == ValueType::Int && (*value < Narrow::min() || *value > Narrow::max()))) return std::nullopt;
  return std::to_string(*value);
}

std::optional<std::string> canonical_uuid(std::string_view text) {
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  std::string digits;
  for (char c : text) {
    c = lower(c);
    if (c == '-' && !digits.empty() && digits.size() % 4 == 0 && digits.size() < 32) continue;
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return std::nullopt;
    digits += c;
  }
  if (digits.size() != 32 || text.back() == '-' || text.find("--") != text.npos) return std::nullopt;
  for (std::size_t at : {8, 13, 18, 23}) digits.insert(at, 1, '-');
  return digits;
}

std::int64_t big_endian(std::string_view bytes) {
  std::uint64_t value = bytes.empty() || (bytes.front() & 0x80) == 0 ? 0 : ~std::uint64_t{0};
  for (char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

std::size_t integer_size(std::uint32_t type) {
  return type == kInt8Oid ? 8 : type == kInt4Oid ? 4 : type == kInt2Oid ? 2 : 0;
}

std::optional<std::string> uuid_of_bytes(std::string_view bytes) {
  if (bytes.size() != 16) return std::nullopt;
  std::string hex;
  for (char c : bytes) hex += format("%02x", static_cast<unsigned char>(c));
  return canonical_uuid(hex);
}

// A parameter that is compared with a column elsewhere as well may have been given another number type there; in these
// all small integers mean the same.
bool is_same_in_every_number_type(std::string_view canonical) {
  std::int64_t value = parse_integer(canonical).value_or(std::numeric_limits<std::int64_t>::max());
  return value > -(1 << 24) && value < (1 << 24);
}

}  // namespace

std::optional<ValueType> value_type(std::string_view name) {
  if (name == "bigint") return ValueType::BigInt;
  if (name == "integer") return ValueType::Int;
  if (name == "uuid") return ValueType::Uuid;
  if (name == "text") return ValueType::Text;
  return std::nullopt;
}

std::string_view sql_name(ValueType type) {
  constexpr std::string_view kNames[] = {"integer", "bigint", "uuid", "text"};
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<std::string> canonical_text(ValueType type, std::string_view text) {
  switch (type) {
    case ValueType::Int:
    case ValueType::BigInt:
      return integer_in(type, parse_integer(text));
    case ValueType::Uuid:
      return canonical_uuid(text);
    case ValueType::Text:
      if (text.find('\0') != text.npos) return std::nullopt;
      return std::string(text);
  }
  return std::nullopt;
}

std::optional<std::string> canonical_parameter(ValueType type, const Parameter& p, bool is_only_use) {
  if (p.is_null) return std::nullopt;
  const bool is_declared = p.type != 0 && p.type != kUnknownOid;
  // Without the type the bytes could be anything (eight bytes are a bigint, or a numeric that is zero).
  if (p.is_binary && !is_declared) return std::nullopt;
  switch (type) {
    case ValueType::Int:
    case ValueType::BigInt: {
      if (!is_declared) {
        auto text = canonical_text(type, p.bytes);
        return text && (is_only_use || is_same_in_every_number_type(*text)) ? text : std::nullopt;
      }
      std::size_t size = integer_size(p.type);
      if (size == 0) return std::nullopt;
      if (p.is_binary)
        return p.bytes.size() == size ? integer_in(ValueType::BigInt, big_endian(p.bytes)) : std::nullopt;
      // A declared int4 that is out of its range is the server's to refuse; compared, types of integers may differ.
      return canonical_text(size == 8 ? ValueType::BigInt : ValueType::Int, p.bytes);
    }
    case ValueType::Uuid:
      if (is_declared && p.type != kUuidOid) return std::nullopt;
      return p.is_binary ? uuid_of_bytes(p.bytes) : canonical_uuid(p.bytes);
    case ValueType::Text:
      if (is_declared && p.type != kTextOid && p.type != kVarcharOid) return std::nullopt;
      if (!is_declared && !is_only_use) return std::nullopt;
      return canonical_text(type, p.bytes);
  }
  return std::nullopt;
}

}  // namespace lokadb::catalog
