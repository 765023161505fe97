#include "sql/parse.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "sql/cases.h"
#include "sql_oracle.h"

namespace lokadb::sql {
namespace {

BOOST_AUTO_TEST_SUITE(sql_parse)

BOOST_AUTO_TEST_CASE(every_statement_has_the_facts_that_were_written_down) {
  BOOST_TEST(all_cases().size() >= 300u);
  for (const Case& one : all_cases()) {
    std::string facts = dump(parse_sql(one.text));
    if (facts != one.facts) BOOST_ERROR(one.file << ":" << one.line << "\n" << one.text << "\nhas\n" << facts);
  }
}

BOOST_AUTO_TEST_CASE(facts_do_not_depend_on_literals) {
  std::size_t compared = 0;
  for (const Case& one : all_cases()) {
    Lifted lifted, again;
    lift(one.text, true, lifted);
    Parsed parsed = parse_sql(one.text);
    bool depends = lifted.is_exact || !parsed.error.empty();
    for (const Statement& statement : parsed.statements) depends = depends || statement.depends_on_literals;
    if (depends) continue;
    std::string other = with_other_literals(one.text, lifted);
    lift(other, true, again);
    BOOST_TEST(again.key == lifted.key, other);
    BOOST_TEST(dump(parse_sql(other)) == one.facts, one.file << ":" << one.line << " " << other);
    BOOST_TEST(fingerprint_of(other) == fingerprint_of(one.text), other);
    ++compared;
  }
  BOOST_TEST(compared > 250u);
}

BOOST_AUTO_TEST_CASE(a_statement_without_standard_strings_has_the_same_facts) {
  for (const Case& one : all_cases()) {
    if (one.text.find('\\') != one.text.npos || one.text.find("U&") != one.text.npos) continue;
    BOOST_TEST(dump(parse_sql(one.text, false)) == one.facts, one.text);
  }
  std::string text = R"(select * from t where a = 'it\'s' and b = 5)";
  BOOST_TEST(!parse_sql(text).error.empty());
  Parsed parsed = parse_sql(text, false);
  BOOST_REQUIRE(parsed.statements.size() == 1u);
  BOOST_TEST(parsed.statements[0].equalities.size() == 2u);
  BOOST_TEST(parsed.statements[0].equalities[1].right.value.index == 1);
  BOOST_TEST(!parse_sql("select U&'a'", false).error.empty());
}

BOOST_AUTO_TEST_CASE(errors_have_a_place) {
  Parsed parsed = parse_sql("select 'é', from t where");
  BOOST_TEST(parsed.error == "syntax error at or near \"from\"");
  BOOST_TEST(parsed.error_position == 14);  // in bytes
  BOOST_TEST(!parse_sql("select 'open").error.empty());
  BOOST_TEST(!parse_sql(std::string_view("select\0 1", 9)).error.empty());
  BOOST_TEST(parse_sql("").error.empty());
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

// SPEC D1: whatever is not understood is not direct. And no text ends the process, even on a small stack.
BOOST_AUTO_TEST_CASE(deep_nesting_is_not_understood) {
  std::string texts[] = {
      "select " + repeated("(select ", 100000) + "1" + repeated(")", 100000),
      "select " + repeated("not ", 100000) + "true",
      "select 1" + repeated(" + 1", 100000),
      "select " + repeated("f(1, ", 100000) + "1" + repeated(")", 100000),
      "select 1" + repeated(" union select 1", 100000),
      "select 1" + repeated("::int", 100000),
      "select * from a" + repeated(" join b on true", 100000),
      "select " + repeated("case when true then ", 100000) + "1" + repeated(" end", 100000),
  };
  for (const std::string& text : texts) {
    Parsed parsed = parse_sql(text);
    BOOST_REQUIRE(parsed.statements.size() == 1u);
    BOOST_TEST((parsed.statements[0].kind == StatementClass::Call));
    BOOST_TEST(!parsed.statements[0].not_understood.empty());
    BOOST_TEST(fingerprint_of(text) == 0u);
  }
  // As deep as can be; and what is long, but flat.
  BOOST_TEST(dump(parse_sql("select " + repeated("(select ", 490) + "1" + repeated(")", 490))).find("deep") !=
             std::string::npos);
  Parsed flat = parse_sql("insert into t values (1, 2)" + repeated(", (3, 4)", 20000));
  BOOST_REQUIRE(flat.statements.size() == 1u);
  BOOST_TEST(flat.statements[0].not_understood.empty());
  BOOST_TEST(flat.statements[0].insertion->rows.size() == 20001u);
}

BOOST_AUTO_TEST_CASE(more_relations_than_fit_are_not_understood) {
  std::string text = "select * from t0";
  for (int i = 1; i < 64; ++i) text += ", t" + std::to_string(i);
  BOOST_TEST(parse_sql(text).statements[0].not_understood.empty());
  BOOST_TEST(parse_sql(text + ", more").statements[0].not_understood.size() == 1u);
}

BOOST_AUTO_TEST_CASE(statements_of_one_text_have_their_places) {
  Parsed parsed = parse_sql("select 1 ; /* two */ select * from documents");
  BOOST_REQUIRE(parsed.statements.size() == 2u);
  BOOST_TEST(parsed.statements[0].length == 9);
  BOOST_TEST(parsed.statements[1].location == 10);
  BOOST_TEST(parsed.statements[1].relations[0].location == 35);
}

BOOST_AUTO_TEST_CASE(fingerprints_leave_out_constants_only) {
  BOOST_TEST(fingerprint_of("select * from t where a = 1") == fingerprint_of("SELECT *  FROM t WHERE a = $1 -- x"));
  BOOST_TEST(fingerprint_of("select * from t where a = 1") != fingerprint_of("select * from t where b = 1"));
  BOOST_TEST(fingerprint_of("select (") == 0u);
}

BOOST_AUTO_TEST_CASE(threads_parse_side_by_side) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&wrong] {
      for (const Case& one : all_cases())
        if (dump(parse_sql(one.text)) != one.facts) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::sql
