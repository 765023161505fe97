// The text that lokadb-plugin-check reads.
#include "check/script.h"

#include <boost/test/unit_test.hpp>

using namespace lokadb;
using namespace lokadb::check;

namespace {

std::string fault(std::string_view text) {
  auto cases = parse_script(text);
  return cases ? std::string() : cases.error().log_text();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(check_script)

BOOST_AUTO_TEST_CASE(a_script_is_cases_of_statements) {
  auto cases = parse_script(
      "# a comment\n\nbatch the first\n  role alice \n status T\nflush\nsetting app.org  7\n"
      "bind select $1, $2\nknown 5\nparam 25 text a b\nparam 17 binary 00ff\nparam 0 null\n"
      "answer\nrow a|\\N\nanswer\nexpect direct 7 because known\n"
      "batch\npartial\nsimple select 1");
  BOOST_REQUIRE(static_cast<bool>(cases));
  BOOST_REQUIRE(cases->size() == 2u);
  const Case& first = cases->front();
  BOOST_TEST(first.name == "the first");
  BOOST_TEST(first.role == "alice");
  BOOST_TEST(first.status == 'T');
  BOOST_TEST(first.ends_in_flush);
  BOOST_TEST(first.settings.at("app.org") == "7");
  BOOST_TEST(first.expected == "direct 7 because known");
  BOOST_REQUIRE(first.statements.size() == 1u);
  const Statement& s = first.statements.front();
  BOOST_TEST(s.form == std::uint32_t{LOKADB_BIND});
  BOOST_TEST(s.text == "select $1, $2");
  BOOST_TEST(s.known_as == 5u);
  BOOST_REQUIRE(s.parameters.size() == 3u);
  BOOST_TEST(s.parameters[0].value == "a b");
  BOOST_TEST(s.parameters[1].value == std::string("\0\xff", 2));
  BOOST_TEST(s.parameters[1].is_binary);
  BOOST_TEST(s.parameters[2].is_null);
  BOOST_REQUIRE(first.answers.size() == 2u);
  BOOST_TEST(first.answers[0].at(0).at(0).second == "a");
  BOOST_TEST(first.answers[0].at(0).at(1).first);
  BOOST_TEST(first.answers[1].empty());
  BOOST_TEST(cases->back().name == "batch 2");
  BOOST_TEST(!cases->back().is_whole);
}

BOOST_AUTO_TEST_CASE(faults_name_their_line) {
  BOOST_TEST(fault("\nsimple x") == "line 2: the first line must be batch");
  BOOST_TEST(fault("batch\nparam 1 null") == "line 2: param without bind");
  BOOST_TEST(fault("batch\nbind x\nparam text y") == "line 3: param without the OID of its type");
  BOOST_TEST(fault("batch\nbind x\nparam 25 blob y") == "line 3: param is text, binary or null");
  BOOST_TEST(fault("batch\nbind x\nparam 25 binary 0") == "line 3: binary wants pairs of hexadecimal digits");
  BOOST_TEST(fault("batch\nstatus X") == "line 2: status is I, T or E");
  BOOST_TEST(fault("batch\nknown 3") == "line 2: known wants a number, behind a statement");
}

BOOST_AUTO_TEST_CASE(the_built_in_cases_have_every_form) {
  std::uint32_t forms = 0;
  auto cases = built_in_cases();
  BOOST_TEST(cases.size() > 12u);
  for (const Case& c : cases)
    for (const Statement& s : c.statements) forms |= 1u << s.form;
  BOOST_TEST(forms == (1u << LOKADB_SIMPLE | 1u << LOKADB_BIND | 1u << LOKADB_PARSE | 1u << LOKADB_OTHER |
                       1u << LOKADB_FUNCTION_CALL));
}

BOOST_AUTO_TEST_SUITE_END()
