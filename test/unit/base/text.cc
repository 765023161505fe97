#include "base/text.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <unordered_map>

namespace lokadb {
namespace {

using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(base_text)

BOOST_AUTO_TEST_CASE(only_ascii_letters_have_a_lower_case) {
  BOOST_TEST(lower('A') == 'a');
  BOOST_TEST(lower('Z') == 'z');
  BOOST_TEST(lower('@') == '@');  // the neighbours of the letters
  BOOST_TEST(lower('[') == '[');
  BOOST_TEST(lower("Time ZONE_9 \xc4\xd6"sv) == "time zone_9 \xc4\xd6");
}

BOOST_AUTO_TEST_CASE(equality_without_case) {
  BOOST_TEST(iequals("DateStyle", "datestyle"));
  BOOST_TEST(iequals("", ""));
  BOOST_TEST(!iequals("a", "ab"));
  BOOST_TEST(!iequals("ab", "ac"));
  BOOST_TEST(!iequals("@", "`"));  // differ by the bit that tells upper from lower case
  BOOST_TEST(!iequals("\xc4", "\xe4"));
}

BOOST_AUTO_TEST_CASE(white_space) {
  for (int c = 0; c < 256; ++c) {
    bool expected = c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r';
    BOOST_TEST(is_space(static_cast<char>(c)) == expected);
  }
  BOOST_TEST(trim(" \t a b \r\n") == "a b");
  BOOST_TEST(trim(" \t ") == "");
  BOOST_TEST(trim("") == "");
  BOOST_TEST(rtrim("  a  ") == "  a");
  BOOST_TEST(rtrim("   ") == "");
}

BOOST_AUTO_TEST_CASE(lists_are_split_at_commas_and_blanks) {
  auto parts = split_list(" a,b ,, c\td\n,");
  std::vector<std::string> expected{"a", "b", "c", "d"};
  BOOST_TEST(parts == expected, boost::test_tools::per_element());
  BOOST_TEST(split_list("").empty());
  BOOST_TEST(split_list(" , ,").empty());
  BOOST_TEST(split_list("one").size() == 1u);
}

BOOST_AUTO_TEST_CASE(whole_integer_literals_of_c) {
  BOOST_TEST(parse_c_int("10").value() == 10);
  BOOST_TEST(parse_c_int("0x1f").value() == 31);
  BOOST_TEST(parse_c_int("0777").value() == 511);
  BOOST_TEST(parse_c_int("-5").value() == -5);
  BOOST_TEST(parse_c_int("+5").value() == 5);
  BOOST_TEST(parse_c_int("0").value() == 0);
  BOOST_TEST(parse_c_int("9223372036854775807").value() == std::numeric_limits<std::int64_t>::max());
}

BOOST_AUTO_TEST_CASE(anything_else_is_no_integer) {
  for (auto text : {""sv, " 10"sv, "10 "sv, "10s"sv, "yes"sv, "0x"sv, "08"sv, "1.0"sv, "-"sv, "9223372036854775808"sv,
                    "10\0"sv, "10\0junk"sv})
    BOOST_TEST(!parse_c_int(text), "taken for an integer: '" << text << "'");
}

BOOST_AUTO_TEST_CASE(the_leading_number_as_atoi_reads_it) {
  BOOST_TEST(parse_atoi("42abc") == 42);
  BOOST_TEST(parse_atoi("  -7") == -7);
  BOOST_TEST(parse_atoi("0x10") == 0);
  BOOST_TEST(parse_atoi("010") == 10);
  BOOST_TEST(parse_atoi("abc") == 0);
  BOOST_TEST(parse_atoi("") == 0);
  BOOST_TEST(parse_atoi("99999999999999999999") == std::numeric_limits<std::int64_t>::max());
  BOOST_TEST(parse_atoi("-99999999999999999999") == std::numeric_limits<std::int64_t>::min());
}

// The text must come from a copy that ends where the view ends.
BOOST_AUTO_TEST_CASE(numbers_end_where_their_view_ends) {
  BOOST_TEST(parse_atoi("1234"sv.substr(0, 2)) == 12);
  BOOST_TEST(parse_c_int("12x"sv.substr(0, 2)).value() == 12);
}

BOOST_AUTO_TEST_CASE(formatted_texts_have_any_length) {
  BOOST_TEST(format("%s-%d", "a", 5) == "a-5");
  BOOST_TEST(format("%s", "") == "");
  std::string big(100000, 'x');
  BOOST_TEST(format("<%s>", big.c_str()) == "<" + big + ">");
}

BOOST_AUTO_TEST_CASE(maps_are_searched_with_views) {
  std::unordered_map<std::string, int, TextHash, std::equal_to<>> map{{"key", 1}};
  BOOST_TEST((map.find("key"sv) != map.end()));
  BOOST_TEST((map.find("ke"sv) == map.end()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
