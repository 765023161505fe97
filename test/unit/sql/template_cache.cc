#include "sql/template_cache.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "sql/literal.h"
#include "sql/parse.h"

namespace lokadb::sql {
namespace {

struct Fixture {
  TemplateCache cache{TemplateCache::Limits{}};
  Lifted lifted;

  TemplatePtr get(std::string_view text, bool has_standard_strings = true) {
    return cache.get(text, has_standard_strings, lifted);
  }
  std::string literal(std::string_view text, std::size_t i) {
    std::string value;
    BOOST_TEST(decode_literal(text, lifted.literals.at(i), value));
    return value;
  }
};

BOOST_FIXTURE_TEST_SUITE(sql_template_cache, Fixture)

BOOST_AUTO_TEST_CASE(statements_that_differ_in_literals_share_their_facts) {
  auto first = get("select * from documents where id = 5 and title = 'x' -- one");
  std::string second_text = "select * from documents where id = 4711 and title = 'it''s' -- two";
  auto second = get(second_text);
  BOOST_TEST(first == second);
  BOOST_TEST(literal(second_text, 0) == "4711");
  BOOST_TEST(literal(second_text, 1) == "it's");
  BOOST_TEST(get("select * from documents where id = 5 and title = $1 -- one") != first);
  BOOST_TEST(get("select * from documents where id = 5.5 and title = 'x' -- one") != first);
  BOOST_TEST(get("select * from documents where id = 99999999999 and title = 'x' -- one") != first);
  BOOST_TEST(get("select *  from documents where id = 5 and title = 'x' -- one") != first);
  BOOST_TEST(cache.counters().hits == 2u);  // the last two numbers are of one kind
  BOOST_TEST(cache.counters().misses == 4u);
  BOOST_TEST(first->fingerprint == fingerprint_of(second_text));
}

BOOST_AUTO_TEST_CASE(facts_that_depend_on_literals_are_for_one_text) {
  auto one = get("select a, count(*) from t group by 1");
  auto two = get("select a, count(*) from t group by 2");
  BOOST_TEST(one != two);
  BOOST_TEST(get("select a, count(*) from t group by 1") == one);
  BOOST_TEST(get("select a, count(*) from t group by 2") == two);
  auto name = get("select U&\"d!0061\" uescape '!'");
  BOOST_TEST(get("select U&\"d!0061\" uescape '?'") != name);
  BOOST_TEST(get("select U&\"d!0061\" uescape '!'") == name);
  BOOST_TEST(cache.counters().hits == 3u);
}

BOOST_AUTO_TEST_CASE(an_error_does_not_spoil_its_template) {
  auto bad = get("select E'\\u12'");
  BOOST_TEST(!bad->parsed.error.empty());
  BOOST_TEST(get("select E'\\u12'") == bad);
  auto good = get("select E'fine'");
  BOOST_TEST(good->parsed.error.empty());
  BOOST_TEST(get("select E'as well'") == good);
  auto open = get("select 'open");
  BOOST_TEST(!open->parsed.error.empty());
  BOOST_TEST(get("select 'open") == open);
}

BOOST_AUTO_TEST_CASE(strings_are_cut_as_the_session_has_them) {
  std::string text = "select 'a\\', 'b' from t where x = '";
  auto standard = get("select 'a\\', b, c");
  BOOST_TEST(standard->literals.size() == 1u);
  auto other = get("select 'a\\', b, c'", false);
  BOOST_TEST(other->literals.size() == 1u);
  BOOST_TEST(other->parsed.error.empty());
  BOOST_TEST(!get("select 'a\\', b, c", false)->parsed.error.empty());
  BOOST_TEST(get("select 'a\\', b, c") == standard);
}

BOOST_AUTO_TEST_CASE(positions_move_with_the_literals) {
  std::string old_text = "select 'a', /* x */ 1 from documents",
              new_text = "select 'abc', /* long one */ 22 from documents";
  auto made = get(old_text);
  BOOST_TEST(get(new_text) == made);
  BOOST_TEST(made->position_in(lifted, static_cast<std::uint32_t>(old_text.find("documents"))) ==
             new_text.find("documents"));
  BOOST_TEST(made->position_in(lifted, 0) == 0u);
  BOOST_TEST(made->position_in(lifted, static_cast<std::uint32_t>(old_text.find('1'))) == new_text.find("22"));
  BOOST_TEST(made->position_in(lifted, static_cast<std::uint32_t>(old_text.find("x"))) == new_text.find("/*"));
  BOOST_TEST(made->position_in(lifted, static_cast<std::uint32_t>(old_text.size())) == new_text.size());
}

BOOST_AUTO_TEST_CASE(bytes_are_bounded) {
  TemplateCache small{{.bytes = 256u << 10, .text_bytes = 1000}};
  for (int i = 0; i < 3000; ++i) {
    auto made = small.get("select c" + std::to_string(i) + " from documents where organization_id = 1", true, lifted);
    BOOST_REQUIRE(made->parsed.statements.size() == 1u);
    BOOST_REQUIRE(small.counters().bytes <= 256u << 10);
  }
  BOOST_TEST(small.counters().evictions > 1000u);
  BOOST_TEST(small.counters().entries > 50u);
  // Just used, so still there.
  auto hits = small.counters().hits;
  (void)small.get("select c2999 from documents where organization_id = 7", true, lifted);
  BOOST_TEST(small.counters().hits == hits + 1);
  // Too long to be kept.
  std::string text = "select 1 -- " + std::string(1000, 'x');
  auto entries = small.counters().entries;
  BOOST_TEST(small.get(text, true, lifted) != small.get(text, true, lifted));
  BOOST_TEST(small.counters().entries == entries);
}

BOOST_AUTO_TEST_CASE(threads_share_it) {
  TemplateCache small{{.bytes = 512u << 10}};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&small, &wrong, t] {
      Lifted mine;
      for (int i = 0; i < 3000; ++i) {
        std::string name = "c" + std::to_string((i * (t + 1)) % 500);
        auto made = small.get("select " + name + " from t where x = " + std::to_string(i), true, mine);
        if (made->parsed.statements.size() != 1 || made->parsed.statements[0].columns[1].column.name != name) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(small.counters().hits + small.counters().misses == 12000u);
}

BOOST_AUTO_TEST_CASE(literals_say_what_postgresql_reads) {
  auto value = [](std::string_view text, bool has_standard_strings = true) {
    std::string out;
    return decode_literal(text, Lexer(text, has_standard_strings).next(), out) ? out : "?";
  };
  BOOST_TEST(value("'it''s \\n'") == "it's \\n");
  BOOST_TEST(value("'a\\'b\\\\'", false) == "a'b\\");
  BOOST_TEST(value("E'\\b\\f\\n\\r\\t\\x41\\101\\u0041\\U00000041\\q\\''") == "\b\f\n\r\tAAAAq'");
  BOOST_TEST(value("E'\\x'") == "x");
  BOOST_TEST(value("U&'\\0041\\+000042\\\\'") == "AB\\");
  BOOST_TEST(value("'a' -- it's\n  'b''c'") == "ab'c");
  BOOST_TEST(value("$x$a'$b$x$") == "a'$b");
  BOOST_TEST(value("$$$$") == "");
  BOOST_TEST(value("B'101'") == "101");
  BOOST_TEST(value("1.5e3") == "1.5e3");
  BOOST_TEST(value("'\xc3\xa9'") == "\xc3\xa9");
  for (const char* text : {"E'\\u00e9'", "E'\\xff'", "E'\\0'", "U&'\\00e9'", "U&'\\1'", "E'\\u12'"})
    BOOST_TEST(value(text) == "?", text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::sql
