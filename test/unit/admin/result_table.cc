#include "admin/result_table.h"

#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

using namespace std::string_view_literals;

std::string description(const ResultTable& table) {
  ByteBuffer out;
  table.write_description(out);
  return std::string(as_text(out.bytes()));
}
std::string rows(const ResultTable& table) {
  ByteBuffer out;
  table.write_rows(out);
  return std::string(as_text(out.bytes()));
}

BOOST_AUTO_TEST_SUITE(admin_result_table)

BOOST_AUTO_TEST_CASE(columns_come_from_a_list) {
  ResultTable table("name t, port i,\n wait_us   q");
  BOOST_TEST(table.column_count() == 3u);
  BOOST_TEST(table.row_count() == 0u);
  BOOST_TEST(ResultTable("").column_count() == 0u);
}

// Name, no table (4 + 2 bytes), type, its size, no modifier, text format.
BOOST_AUTO_TEST_CASE(a_description_has_postgresqls_types) {
  struct {
    std::string_view letter, type_and_size;
  } const table[] = {
      {"t", "\0\0\0\x19\xff\xff"sv},    // text, 25
      {"i", "\0\0\0\x17\0\x04"sv},      // int4, 23
      {"q", "\0\0\0\x14\0\x08"sv},      // int8, 20
      {"n", "\0\0\x06\xa4\xff\xff"sv},  // numeric, 1700
      {"b", "\0\0\0\x11\xff\xff"sv},    // bytea, 17
  };
  for (const auto& row : table) {
    std::string expected(
        "T\0\0\0\x1b\0\x01"
        "ab\0\0\0\0\0\0\0"sv);
    expected.append(row.type_and_size).append("\xff\xff\xff\xff\0\0"sv);
    BOOST_TEST(description(ResultTable("ab " + std::string(row.letter))) == expected);
  }
}

BOOST_AUTO_TEST_CASE(columns_are_described_in_order) {
  std::string both = description(ResultTable("first t, second i"));
  BOOST_TEST(both.substr(5, 2) == "\0\x02"sv);
  BOOST_TEST(both.find("first\0"sv) < both.find("second\0"sv));
  BOOST_TEST(description(ResultTable("")) == "T\0\0\0\x06\0\0"sv);
}

BOOST_AUTO_TEST_CASE(values_are_texts_with_their_length) {
  ResultTable table("name t, port i, other t, last t");
  table.add_row().text("ab").number(-6432).null().maybe("x");
  BOOST_TEST(rows(table) ==
             "D\0\0\0\x1e\0\x04"
             "\0\0\0\x02"
             "ab"
             "\0\0\0\x05"
             "-6432"
             "\xff\xff\xff\xff"
             "\0\0\0\x01"
             "x"sv);
}

BOOST_AUTO_TEST_CASE(an_empty_text_is_not_null) {
  ResultTable table("a t, b t");
  table.add_row().text("").maybe(std::nullopt);
  BOOST_TEST(rows(table) == "D\0\0\0\x0e\0\x02\0\0\0\0\xff\xff\xff\xff"sv);
}

BOOST_AUTO_TEST_CASE(numbers_of_64_bits) {
  ResultTable table("a q, b q");
  table.add_row().number(INT64_MAX).number(INT64_MIN);
  BOOST_TEST(rows(table).find("9223372036854775807\0\0\0\x14-9223372036854775808"sv) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_come_in_order) {
  ResultTable table("a t");
  for (auto text : {"1", "2", "3"}) table.add_row().text(text);
  BOOST_TEST(table.row_count() == 3u);
  BOOST_TEST(rows(table) ==
             "D\0\0\0\x0b\0\x01\0\0\0\x01"
             "1"
             "D\0\0\0\x0b\0\x01\0\0\0\x01"
             "2"
             "D\0\0\0\x0b\0\x01\0\0\0\x01"
             "3"sv);
  BOOST_TEST(rows(ResultTable("a t")) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
