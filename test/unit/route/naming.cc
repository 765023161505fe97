// What single statements do to the setting that names the organization (SPEC T1, T6).
#include "route/naming.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "route/literals.h"
#include "sql/parse.h"

namespace lokadb::route {
namespace {

using catalog::Parameter;
using Kind = NamingEffect::Kind;

std::string words(const NamingEffect& e) {
  constexpr std::string_view kKinds[] = {"none",      "set",     "default",     "current", "commit",        "rollback",
                                         "savepoint", "release", "rollback-to", "unseen",  "not-understood"};
  std::string text(kKinds[static_cast<std::size_t>(e.kind)]);
  bool has_text =
      e.kind == Kind::Set || e.kind == Kind::Savepoint || e.kind == Kind::Release || e.kind == Kind::RollbackTo;
  if (has_text) text += " [" + e.text + "]";
  if (e.is_local) text += " local";
  if (e.names_only) text += " only";
  return text;
}

std::string effect_of(std::string_view text, std::vector<Parameter> parameters = {},
                      std::string_view setting = "lokadb.tenant", bool is_bound = true, bool has_utf8 = true) {
  sql::Parsed parsed = sql::parse_sql(text);
  BOOST_REQUIRE_MESSAGE(parsed.statements.size() == 1, text << ": " << parsed.error);
  LiteralList literals(text);
  return words(naming_effect(parsed.statements[0], {literals.view(), parameters}, setting, is_bound, has_utf8));
}

struct Case {
  std::string_view text, effect;
};

constexpr Case kCases[] = {
    // SET
    {"SET LOCAL lokadb.tenant = 42", "set [42] local only"},
    {"set local LokaDB.Tenant to '42'", "set [42] local only"},
    {"SET LOCAL \"lokadb\".\"tenant\" = 42", "set [42] local only"},
    {"SET LOCAL \"lokadb.tenant\" = 42", "set [42] local only"},
    {"SET LOCAL lokadb.tenant = -7", "set [-7] local only"},
    {"SET LOCAL lokadb.tenant = 042", "set [42] local only"},
    {"SET LOCAL lokadb.tenant = 99999999999", "set [99999999999] local only"},
    {"SET LOCAL lokadb.tenant = 4.50", "set [4.50] local only"},
    {"SET LOCAL lokadb.tenant = acme", "set [acme] local only"},
    {"SET LOCAL lokadb.tenant = \"Acme\"", "set [Acme] local only"},
    {"SET LOCAL lokadb.tenant = 'it''s'", "set [it's] local only"},
    {"SET LOCAL lokadb.tenant = $$42$$", "set [42] local only"},
    {"SET LOCAL lokadb.tenant = '*'", "set [*] local only"},
    {"SET LOCAL lokadb.tenant = ''", "set [] local only"},
    {"/* who */ SET LOCAL lokadb.tenant = 42 -- now", "set [42] local only"},
    {"SET LOCAL lokadb.tenant = E'4\\x32'", "not-understood"},
    {"SET LOCAL lokadb.tenant = U&'\\0034'", "not-understood"},
    {"SET LOCAL lokadb.tenant = 1, 2", "none"},  // an error
    {"SET lokadb.tenant = 42", "set [42]"},
    {"SET SESSION lokadb.tenant = 42", "set [42]"},
    {"SET lokadb.tenant = ''", "set []"},
    {"SET lokadb.tenant FROM CURRENT", "current"},
    {"SET LOCAL lokadb.tenant FROM CURRENT", "current local"},
    {"SET lokadb.tenant TO DEFAULT", "default"},
    {"SET LOCAL lokadb.tenant TO DEFAULT", "default local"},
    {"RESET lokadb.tenant", "default"},
    {"RESET ALL", "default"},
    {"DISCARD ALL", "default"},
    {"DISCARD PLANS", "none"},
    {"SET LOCAL lokadb.tenants = 42", "none"},
    {"SET LOCAL search_path = app", "none"},
    {"SET TIME ZONE 'UTC'", "none"},
    {"RESET search_path", "none"},
    {"SHOW lokadb.tenant", "none"},
    // set_config
    {"SELECT set_config('lokadb.tenant', '42', true)", "set [42] local only"},
    {"select pg_catalog.set_config('LOKADB.TENANT', '42', TRUE) as x", "set [42] local only"},
    {"SELECT set_config('lokadb.tenant', 42::text, true)", "set [42] local only"},
    {"SELECT set_config('lokadb.tenant'::text, '42'::text, true::bool)", "set [42] local only"},
    {"SELECT set_config('lokadb.tenant', '42', 'true')", "set [42] local"},
    {"SELECT set_config('lokadb.tenant', '42', 't'), 1", "set [42] local"},
    {"SELECT set_config('lokadb.tenant', '42', false)", "set [42]"},
    {"SELECT set_config('lokadb.tenant', '42', 'no')", "set [42]"},
    {"SELECT set_config('lokadb.tenant', '42', NULL)", "set [42]"},
    {"SELECT set_config('lokadb.tenant', NULL, true)", "default local"},
    {"SELECT set_config('lokadb.tenant', '', false)", "set []"},
    {"SELECT \"set_config\"('lokadb.tenant', '42', true)", "set [42] local only"},
    {"SELECT U&\"set\\005fconfig\"('lokadb.tenant', '42', true)", "set [42] local only"},
    {"SELECT set_config('app.user', 'u', true), set_config('lokadb.tenant', '42', true)", "set [42] local"},
    {"SELECT set_config('lokadb.tenant', '1', true), set_config('lokadb.tenant', '2', true)", "set [2] local only"},
    {"SELECT set_config('lokadb.tenant', '1', true), set_config('lokadb.tenant', '2', false)", "not-understood"},
    {"SELECT set_config('app.user', 'u', true)", "none"},
    {"SELECT set_config('lokadb.tenant', '42')", "none"},  // no such function
    {"SELECT app.set_config('lokadb.tenant', '42', true)", "none"},
    {"SELECT set_config('lokadb.' || 'tenant', '42', true)", "unseen"},
    {"SELECT set_config(name, 'off', false) FROM pg_settings WHERE name = 'jit'", "unseen"},
    // where it cannot be known whether it is called, or with what
    {"SELECT set_config('lokadb.tenant', '42', true) WHERE false", "not-understood"},
    {"SELECT set_config('lokadb.tenant', '42', true) LIMIT 0", "not-understood"},
    {"SELECT set_config('lokadb.tenant', '42', true), generate_series(1, 0)", "not-understood"},
    {"SELECT set_config('lokadb.tenant', '42', true) FROM documents", "not-understood"},
    {"SELECT id FROM documents WHERE set_config('lokadb.tenant', '42', true) = '42'", "not-understood"},
    {"WITH x AS (SELECT set_config('lokadb.tenant', '42', true)) SELECT 1", "not-understood"},
    {"SELECT CASE WHEN true THEN set_config('lokadb.tenant', '42', true) END", "not-understood"},
    {"SELECT upper(set_config('lokadb.tenant', '42', true))", "not-understood"},
    {"SELECT * FROM set_config('lokadb.tenant', '42', true)", "not-understood"},
    {"SELECT set_config('lokadb.tenant', '42', true) UNION SELECT 'x'", "not-understood"},
    {"SELECT set_config('lokadb.tenant', (SELECT name FROM users LIMIT 1), true)", "not-understood"},
    {"SELECT set_config('lokadb.tenant', 4 || '2', true)", "not-understood"},
    {"SELECT set_config('lokadb.tenant', '42', 1 = 1)", "not-understood"},
    {"SELECT set_config('lokadb.tenant', E'4\\x32', true)", "not-understood"},
    {"INSERT INTO t VALUES (set_config('lokadb.tenant', '42', true))", "not-understood"},
    {"UPDATE t SET a = set_config('lokadb.tenant', '42', false)", "not-understood"},
    {"PREPARE p AS SELECT set_config('lokadb.tenant', $1, true)", "not-understood"},
    {"DECLARE c CURSOR FOR SELECT set_config('lokadb.tenant', '42', true)", "not-understood"},
    {"COPY (SELECT set_config('lokadb.tenant', '42', true)) TO STDOUT", "not-understood"},
    {"EXPLAIN ANALYZE SELECT set_config('lokadb.tenant', '42', true)", "not-understood"},
    {"EXPLAIN SELECT set_config('lokadb.tenant', '42', true)", "none"},
    {"CREATE TABLE t AS SELECT set_config('lokadb.tenant', '42', true)", "none"},     // see has_set_config()
    {"DO $$ begin perform set_config('lokadb.tenant', '42', true); end $$", "none"},  // SPEC T6: it cannot matter
    // transactions
    {"BEGIN", "none"},
    {"COMMIT", "commit"},
    {"END AND CHAIN", "commit"},
    {"PREPARE TRANSACTION 'x'", "commit"},
    {"ROLLBACK", "rollback"},
    {"ABORT", "rollback"},
    {"SAVEPOINT a", "savepoint [a]"},
    {"SAVEPOINT \"A\"", "savepoint [A]"},
    {"RELEASE SAVEPOINT A", "release [a]"},
    {"ROLLBACK TO a", "rollback-to [a]"},
    {"ROLLBACK PREPARED 'x'", "none"},
    {"SELECT 1", "none"},
};

BOOST_AUTO_TEST_SUITE(route_naming)

BOOST_AUTO_TEST_CASE(each_form_has_its_effect) {
  for (const Case& c : kCases) BOOST_TEST(effect_of(c.text) == c.effect, c.text << ": " << effect_of(c.text));
}

// The quick look must let none of them go by.
BOOST_AUTO_TEST_CASE(the_quick_look_misses_nothing) {
  for (const Case& c : kCases)
    if (c.effect != "none") BOOST_TEST(may_name(c.text), c.text);
  for (std::string_view quiet :
       {"SELECT * FROM documents", "  select 1;", "insert into t values ('a;b')", "UPDATE t SET a_b = 1", "", "  "})
    BOOST_TEST(may_name(quiet) == (quiet.find(";b") != quiet.npos), quiet);
  BOOST_TEST(may_name("SELECT 1; SET lokadb.tenant = 1"));
}

BOOST_AUTO_TEST_CASE(another_setting_can_be_it) {
  BOOST_TEST(effect_of("SET LOCAL app.current_tenant = 42", {}, "app.current_tenant") == "set [42] local only");
  BOOST_TEST(effect_of("SET LOCAL lokadb.tenant = 42", {}, "app.current_tenant") == "none");
  BOOST_TEST(effect_of("SELECT set_config('App.Current_Tenant', '42', true)", {}, "app.current_tenant") ==
             "set [42] local only");
}

BOOST_AUTO_TEST_CASE(parameters_are_read) {
  constexpr std::string_view kSet = "SELECT set_config('lokadb.tenant', $1, true)";
  constexpr std::string_view kCast = "SELECT set_config('lokadb.tenant', $1::text, true)";
  constexpr std::string_view kAll = "SELECT set_config($1, $2, $3)";
  BOOST_TEST(effect_of(kSet, {{"42"}}) == "set [42] local only");
  BOOST_TEST(effect_of(kSet, {{"42", 25}}) == "set [42] local only");
  BOOST_TEST(effect_of(kSet, {{"42", 25, true}}) == "set [42] local only");
  BOOST_TEST(effect_of(kSet, {{"", 25, false, true}}) == "default local");
  BOOST_TEST(effect_of(kSet, {{"42", 20}}) == "not-understood");  // no such function; never guessed at
  BOOST_TEST(effect_of(kCast, {{"042", 20}}) == "set [42] local only");
  BOOST_TEST(effect_of(kCast, {{std::string_view("\0\0\0\0\0\0\0\x2a", 8), 20, true}}) == "set [42] local only");
  BOOST_TEST(effect_of(kCast, {{"A0000000-0000-0000-0000-000000000001", 2950}}) ==
             "set [a0000000-0000-0000-0000-000000000001] local only");
  BOOST_TEST(effect_of(kCast, {{"1.50", 1700}}) == "not-understood");
  BOOST_TEST(effect_of(kSet) == "not-understood");  // the value is missing
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {"t"}}) == "set [42] local");
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {"f"}}) == "set [42]");
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {std::string_view("\1", 1), 16, true}}) == "set [42] local");
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {std::string_view("\0", 1), 16, true}}) == "set [42]");
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {"", 0, false, true}}) == "set [42]");
  BOOST_TEST(effect_of(kAll, {{"lokadb.tenant"}, {"42"}, {"perhaps"}}) == "not-understood");
  BOOST_TEST(effect_of(kAll, {{"app.user"}, {"42"}, {"t"}}) == "none");
}

// Of a Parse alone only what is certain counts.
BOOST_AUTO_TEST_CASE(without_values_what_hangs_on_them_is_left_open) {
  auto parsed = [](std::string_view text) { return effect_of(text, {}, "lokadb.tenant", false); };
  BOOST_TEST(parsed("SELECT set_config('lokadb.tenant', $1, true)") == "none");
  BOOST_TEST(parsed("SELECT set_config('lokadb.tenant', $1, false)") == "current");
  BOOST_TEST(parsed("SELECT set_config('lokadb.tenant', '1', $1)") == "none");
  BOOST_TEST(parsed("SELECT set_config($1, $2, $3)") == "none");
  BOOST_TEST(parsed("SET lokadb.tenant = 1") == "set [1]");
}

BOOST_AUTO_TEST_CASE(in_other_encodings_only_ascii_is_known) {
  auto latin = [](std::string_view text) { return effect_of(text, {}, "lokadb.tenant", true, false); };
  BOOST_TEST(latin("SET LOCAL lokadb.tenant = 'acme'") == "set [acme] local only");
  BOOST_TEST(latin("SET LOCAL lokadb.tenant = '\xc3\xa9'") == "not-understood");
  BOOST_TEST(effect_of("SET LOCAL lokadb.tenant = '\xc3\xa9'") == "set [\xc3\xa9] local only");
  for (std::string_view text :
       {"SET LOCAL lokadb.tenant = '\xe9'", "SELECT set_config('lokadb.tenant', '\xe9', true)"}) {
    sql::Parsed parsed = sql::parse_sql(text);
    LiteralList literals(text);
    std::string why = naming_effect(parsed.statements.at(0), {literals.view(), {}}, "lokadb.tenant", true, false).text;
    BOOST_TEST(why.find("client_encoding is not UTF8") != why.npos, why);
  }
}

BOOST_AUTO_TEST_CASE(what_is_for_the_session) {
  BOOST_TEST((NamingEffect{Kind::Set, false, false, "1"}).is_for_session());
  BOOST_TEST((NamingEffect{Kind::Current, false}).is_for_session());
  BOOST_TEST(!(NamingEffect{Kind::Set, true, false, "1"}).is_for_session());
  BOOST_TEST(!(NamingEffect{Kind::Set, false, false, ""}).is_for_session());  // names nothing
  BOOST_TEST(!(NamingEffect{Kind::Default, false}).is_for_session());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::route
