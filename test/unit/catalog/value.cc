#include "catalog/value.h"

#include <boost/test/unit_test.hpp>

namespace lokadb::catalog {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kUuid = "0a1b2c3d-0000-4000-8000-00000000000f";

std::string of(ValueType type, std::string_view text) { return canonical_text(type, text).value_or("unknown"); }

std::string of(ValueType type, std::string_view bytes, std::uint32_t oid, bool is_binary, bool is_only_use = true) {
  return canonical_parameter(type, {bytes, oid, is_binary, false}, is_only_use).value_or("unknown");
}

BOOST_AUTO_TEST_SUITE(catalog_value)

BOOST_AUTO_TEST_CASE(integers_are_decimal_without_ornaments) {
  for (auto text : {"7"sv, "07"sv, "+7"sv, " 7"sv, "7\t"sv, "\n 0007 "sv})
    BOOST_TEST(of(ValueType::BigInt, text) == "7");
  BOOST_TEST(of(ValueType::BigInt, "-7") == "-7");
  BOOST_TEST(of(ValueType::BigInt, "-0") == "0");
  BOOST_TEST(of(ValueType::BigInt, "9223372036854775807") == "9223372036854775807");
  BOOST_TEST(of(ValueType::BigInt, "-9223372036854775808") == "-9223372036854775808");
  BOOST_TEST(of(ValueType::Int, "2147483647") == "2147483647");
}

BOOST_AUTO_TEST_CASE(what_only_the_server_may_read_is_unknown) {
  for (auto text : {""sv, " "sv, "7.0"sv, "7e0"sv, "0x7"sv, "1_000"sv, "- 7"sv, "+-7"sv, "--7"sv, "7 7"sv, "seven"sv,
                    "7\0"sv, "9223372036854775808"sv, "-9223372036854775809"sv, "\xd9\xa7"sv})
    BOOST_TEST(of(ValueType::BigInt, text) == "unknown");
  BOOST_TEST(of(ValueType::Int, "2147483648") == "unknown");
}

BOOST_AUTO_TEST_CASE(every_spelling_of_a_uuid_is_one) {
  for (auto text : {"0A1B2C3D-0000-4000-8000-00000000000F"sv, "{0a1b2c3d-0000-4000-8000-00000000000f}"sv,
                    "0a1b2c3d00004000800000000000000f"sv, "0a1b-2c3d-0000-4000-8000-0000-0000-000f"sv,
                    "0a1b2c3d-00004000-80000000-0000000f"sv})
    BOOST_TEST(of(ValueType::Uuid, text) == kUuid);
  for (auto text : {""sv, "0a1b2c3d-0000-4000-8000-00000000000"sv, "0a1b2c3d-0000-4000-8000-00000000000f0"sv,
                    "0a1b2c3d-0000-4000-8000-00000000000g"sv, "0a1-b2c3d-0000-4000-8000-00000000000f"sv,
                    "-0a1b2c3d00004000800000000000000f"sv, "0a1b2c3d00004000800000000000000f-"sv,
                    "0a1b2c3d--0000-4000-8000-00000000000f"sv, " 0a1b2c3d00004000800000000000000f"sv,
                    "{0a1b2c3d00004000800000000000000f"sv})
    BOOST_TEST(of(ValueType::Uuid, text) == "unknown");
}

BOOST_AUTO_TEST_CASE(texts_are_themselves) {
  BOOST_TEST(of(ValueType::Text, " A ") == " A ");
  BOOST_TEST(of(ValueType::Text, "") == "");
  BOOST_TEST(of(ValueType::Text, "a\0b"sv) == "unknown");
}

BOOST_AUTO_TEST_CASE(parameters_of_integer_columns) {
  const auto eight = "\0\0\0\0\0\0\0\7"sv, four = "\0\0\0\7"sv, two = "\0\7"sv, minus = "\xff\xff\xff\xf9"sv;
  BOOST_TEST(of(ValueType::BigInt, eight, kInt8Oid, true) == "7");
  BOOST_TEST(of(ValueType::BigInt, four, kInt4Oid, true) == "7");
  BOOST_TEST(of(ValueType::BigInt, two, kInt2Oid, true) == "7");
  BOOST_TEST(of(ValueType::BigInt, minus, kInt4Oid, true) == "-7");
  BOOST_TEST(of(ValueType::BigInt, "7", kInt8Oid, false) == "7");
  BOOST_TEST(of(ValueType::BigInt, "7", 0, false) == "7");
  BOOST_TEST(of(ValueType::BigInt, "7", kUnknownOid, false) == "7");
  BOOST_TEST(of(ValueType::Int, eight, kInt8Oid, true) == "7");
}

BOOST_AUTO_TEST_CASE(parameters_of_other_types_are_unknown) {
  for (std::uint32_t oid :
       {1700u /* numeric */, 701u /* float8 */, 700u, kTextOid, kVarcharOid, 1042u /* char */, 26u /* oid */, 16384u})
    BOOST_TEST(of(ValueType::BigInt, "7", oid, false) == "unknown");
  BOOST_TEST(of(ValueType::BigInt, "\0\0\0\0\0\0\0\7"sv, 0, true) == "unknown");  // could be a numeric
  BOOST_TEST(of(ValueType::BigInt, "\0\0\0\7"sv, kInt8Oid, true) == "unknown");   // the wrong length
  BOOST_TEST(of(ValueType::Uuid, kUuid, kTextOid, false) == "unknown");
  BOOST_TEST(of(ValueType::Text, "a", 1042, false) == "unknown");  // blanks at its end do not count
  BOOST_TEST(of(ValueType::Text, "a", 19, false) == "unknown");    // name: cut off at 63 bytes
}

// Elsewhere in the statement an undeclared parameter may have been found to be a float4, which rounds large numbers.
BOOST_AUTO_TEST_CASE(a_parameter_that_is_used_twice_is_known_only_if_small) {
  BOOST_TEST(of(ValueType::BigInt, "16777215", 0, false, false) == "16777215");
  BOOST_TEST(of(ValueType::BigInt, "16777216", 0, false, false) == "unknown");
  BOOST_TEST(of(ValueType::BigInt, "16777217", 0, false, true) == "16777217");
  BOOST_TEST(of(ValueType::BigInt, "16777217", kInt8Oid, false, false) == "16777217");
  BOOST_TEST(of(ValueType::Text, "a", 0, false, false) == "unknown");
  BOOST_TEST(of(ValueType::Text, "a", kTextOid, false, false) == "a");
}

BOOST_AUTO_TEST_CASE(binary_uuids_and_texts) {
  BOOST_TEST(of(ValueType::Uuid, "\x0a\x1b\x2c\x3d\0\0\x40\0\x80\0\0\0\0\0\0\x0f"sv, kUuidOid, true) == kUuid);
  BOOST_TEST(of(ValueType::Uuid, "\x0a\x1b"sv, kUuidOid, true) == "unknown");
  BOOST_TEST(of(ValueType::Text, "a ", kVarcharOid, true) == "a ");
}

BOOST_AUTO_TEST_CASE(null_has_no_canonical_form) {
  BOOST_TEST(!canonical_parameter(ValueType::BigInt, {{}, kInt8Oid, false, true}, true).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::catalog
