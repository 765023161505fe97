// Values of tenant columns and keys in their canonical form: two values are the same organization or key exactly if
// their canonical texts are. What PostgreSQL might read in another way than we do has no canonical form here, and then
// the statement does not go direct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lokadb::catalog {

enum class ValueType : std::uint8_t { Int, BigInt, Uuid, Text };

std::optional<ValueType> value_type(std::string_view sql_name);  // bigint, integer, uuid, text
std::string_view sql_name(ValueType type);

// What the type's input function makes of the text, for column types.
//   Int, BigInt  decimal digits with an optional sign, white space around; no 0x, no underscores (those differ between
//                server versions); in the type's range
//   Uuid         32 hexadecimal digits, a hyphen after any group of four, braces around; lower case comes out
//   Text         as it is; no zero byte
// nullopt: cannot be known here.
std::optional<std::string> canonical_text(ValueType type, std::string_view text);

// Type oids of PostgreSQL that parameters of such columns are declared with.
inline constexpr std::uint32_t kInt8Oid = 20, kInt2Oid = 21, kInt4Oid = 23, kTextOid = 25, kUnknownOid = 705,
                               kVarcharOid = 1043, kUuidOid = 2950;

struct Parameter {
  std::string_view bytes;
  std::uint32_t type = 0;  // declared, or as the server described it; 0: not declared
  bool is_binary = false;
  bool is_null = false;
};

// The value that a comparison `column = $n` has on its right side. nullopt: cannot be known here (also for NULL).
//   is_only_use  the parameter stands nowhere else in the statement, so that its type, if not declared, is the column's
std::optional<std::string> canonical_parameter(ValueType type, const Parameter& parameter, bool is_only_use);

}  // namespace lokadb::catalog
