#include "config/ident.h"

#include <boost/test/unit_test.hpp>

using namespace lokadb;

namespace {

// "map:system>user" of every entry ("*" for all), then the warnings.
std::string read(std::string_view text) {
  auto parsed = parse_ident(text);
  std::string out;
  for (const auto& [name, map] : parsed.maps)
    for (const auto& entry : *map)
      out += name + ":" + entry.system_name + ">" + (entry.is_any_user ? "*" : entry.user) + " ";
  for (const auto& warning : parsed.warnings) out += warning + ";";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_ident)

BOOST_AUTO_TEST_CASE(a_line_is_a_map_a_system_name_and_a_user) {
  BOOST_TEST(read("") == "");
  BOOST_TEST(read("m alice a\nm bob all # anybody\n\n  # m x y\nn\talice\tb\r\n") == "m:alice>a m:bob>* n:alice>b ");
}

BOOST_AUTO_TEST_CASE(quoted_words_are_names) {
  BOOST_TEST(read("\"m n\" \"al \"\"ice\" \"all\"") == "m n:al \"ice>all ");
  IdentEntry any{"x", true, ""}, one{"x", false, "all"};
  BOOST_TEST(any.lets_in_as("b"));
  BOOST_TEST(one.lets_in_as("all"));
  BOOST_TEST(!one.lets_in_as("b"));
}

BOOST_AUTO_TEST_CASE(a_bad_line_is_skipped_and_told) {
  for (auto bad : {"m", "m a", "m a b c", "m a,b c", ", a b", "m a \"b", "m a b \"", "\"", "m a b # \n\"x"})
    BOOST_TEST(read(bad).find("could not parse ident config line") != std::string::npos, bad);
  BOOST_TEST(read("m a\nm b c\n") == "m:b>c could not parse ident config line 1;");
  BOOST_TEST(read(std::string_view("m a b\0", 6)) == "could not parse ident config line 1;");
}

BOOST_AUTO_TEST_CASE(no_short_piece_of_a_line_means_something_else) {
  std::string line = "map \"sys tem\" \"us er\"";
  for (std::size_t n = 1; n < line.size(); ++n)
    BOOST_TEST(read(line.substr(0, n)) == "could not parse ident config line 1;", n);
  BOOST_TEST(read(line) == "map:sys tem>us er ");
}

BOOST_AUTO_TEST_CASE(a_proven_name_lets_in_its_own_user_or_by_a_map) {
  BOOST_TEST(lets_in({"x", "ann"}, "ann", nullptr));
  BOOST_TEST(!lets_in({"x", "Ann"}, "ann", nullptr));
  BOOST_TEST(!lets_in({}, "ann", nullptr));
  IdentMap map{{"alice", false, "ann"}, {"root", true, ""}};
  BOOST_TEST(lets_in({"x", "alice"}, "ann", &map));
  BOOST_TEST(!lets_in({"alice"}, "bob", &map));
  BOOST_TEST(!lets_in({"alice"}, "alice", &map));
  BOOST_TEST(!lets_in({"ann"}, "ann", &map));
  BOOST_TEST(lets_in({"root"}, "bob", &map));
}

BOOST_AUTO_TEST_SUITE_END()
