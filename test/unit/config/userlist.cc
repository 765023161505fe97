#include "config/userlist.h"

#include <boost/test/unit_test.hpp>
#include <map>

using namespace lokadb;

namespace {

// "user:secret" of every user, sorted, then the fault.
std::string read(std::string_view text) {
  auto parsed = parse_userlist(text);
  std::map<std::string, std::string> sorted(parsed.list.secrets.begin(), parsed.list.secrets.end());
  std::string out;
  for (const auto& [user, secret] : sorted) out += user + ":" + secret + " ";
  return out + parsed.fault;
}

std::string line(const std::string& user, const std::string& password) {
  return "\"" + user + "\" \"" + password + "\"\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_userlist)

BOOST_AUTO_TEST_CASE(a_line_is_a_name_and_a_password) {
  BOOST_TEST(read("") == "");
  BOOST_TEST(read("\"a\" \"1\"\n\"b\"\t\"2\"") == "a:1 b:2 ");
  BOOST_TEST(read("\"a\"\"1\"\n") == "broken auth file");  // one name that holds a quote
  BOOST_TEST(read("\"a\" \"\"") == "a: ");
  BOOST_TEST(read("\"\" \"x\"") == ":x ");
  BOOST_TEST(read("\"a\" \"SCRAM-SHA-256$4096:c2FsdA==$a:b\"") == "a:SCRAM-SHA-256$4096:c2FsdA==$a:b ");
}

BOOST_AUTO_TEST_CASE(a_doubled_quote_is_a_quote) {
  BOOST_TEST(read("\"a\"\"b\" \"x\"\"\"") == "a\"b:x\" ");
  BOOST_TEST(read("\"\"\"\" \"\"\"\"\"\"") == "\":\"\" ");
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_line_empty_lines_and_comments_are_skipped) {
  BOOST_TEST(read("\"a\" \"1\" \"more\" ; x\n\n  \t\n; \"c\" \"3\"\r\n  \"b\" \"2\"\r\n") == "a:1 b:2 ");
  BOOST_TEST(read(";\"a\" \"1\"") == "");
}

BOOST_AUTO_TEST_CASE(the_last_line_of_a_name_counts) { BOOST_TEST(read("\"a\" \"1\"\n\"a\" \"2\"\n") == "a:2 "); }

BOOST_AUTO_TEST_CASE(a_broken_line_ends_the_reading) {
  for (auto bad : {"a \"1\"", "# x", "\"b", "\"b\"", "\"b\" 2", "\"b\" \"2", "\"b\" \"2\"\""})
    BOOST_TEST(read(std::string("\"a\" \"1\"\n") + bad) == "a:1 broken auth file", bad);
  BOOST_TEST(read("\"a\"\n\"b\" \"2\"\n") == "broken auth file");
  BOOST_TEST(read(std::string_view("\"a\" \"1\0\"", 8)) == "broken auth file");
}

BOOST_AUTO_TEST_CASE(names_and_passwords_have_limits) {
  std::string name(127, 'n'), password(65530, 'p');
  BOOST_TEST(read(line(name, "1")) == name + ":1 ");
  BOOST_TEST(read(line("a", "1") + line(name + "n", "1")) == "a:1 username too long in auth file");
  auto parsed = parse_userlist(line("a", password));
  BOOST_TEST(parsed.fault == "");
  BOOST_TEST(parsed.list.find("a")->size() == 65530u);
  BOOST_TEST(read(line("a", "1") + line("b", password + "p")) == "a:1 password too long in auth file");
}

BOOST_AUTO_TEST_CASE(users_are_found_by_their_whole_name) {
  auto parsed = parse_userlist("\"alice\" \"1\"");
  BOOST_TEST(parsed.list.find("alice") != nullptr);
  BOOST_TEST(parsed.list.find("Alice") == nullptr);
  BOOST_TEST(parsed.list.find("alic") == nullptr);
}

BOOST_AUTO_TEST_CASE(every_short_prefix_gives_only_whole_lines) {
  std::string text = line("a", "1") + "; c\n" + line("b\"\"", "2");
  for (std::size_t length = 0; length < text.size(); ++length) {
    auto parsed = parse_userlist(std::string_view(text).substr(0, length));
    for (const auto& [user, secret] : parsed.list.secrets) BOOST_TEST(secret == (user == "a" ? "1" : "2"));
  }
  BOOST_TEST(read(text) == "a:1 b\":2 ");
}

BOOST_AUTO_TEST_SUITE_END()
