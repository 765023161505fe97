#include "pool/session_residue.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;
using namespace residue;

const TrackedNames& tracked() {
  static const TrackedNames names({"app.tenant"});
  return names;
}
int found(std::string_view sql) { return residue_of(sql, tracked()); }

BOOST_AUTO_TEST_SUITE(session_residue)

const char* const kNothing[] = {
    "",
    "select 1",
    "BEGIN",
    "update t set a = 1 where b = 'set x'",
    "update only t as u\n  SET a = 1",
    "insert into t values (1) on conflict (a) do update set b = 2",
    "alter table t set (fillfactor = 50)",
    "alter role r set work_mem = '1MB'",
    "alter function f() reset all",
    "create function f() returns int set work_mem = '1MB' language sql as $$ select set_config('a', 'b', false) $$",
    "set local work_mem = '1MB'",
    "SET LOCAL ROLE r",
    "set transaction isolation level serializable; select 1",
    "set constraints all deferred",
    "set transaction_read_only = on",
    "select set_config('work_mem', '1MB', true)",
    "select set_config($1, $2, TRUE), set_config('a.b', f(1, ',)'), true)",
    "select 'set_config(1)', \"set_config\" from t",
    "select pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(2), pg_advisory_unlock(3)",
    "select pg_advisory_unlock_all(); close all; unlisten *",
    "select temp, t.temp, 'create temp table' from weather hold",
    "create temp table t (a int) on commit drop",
    "create temporary table t on commit drop as select 1",
    "declare c cursor for select hold from t",
    "declare c cursor without hold for select 1",
    "select 1 -- \n, 2 as set",
    "-- set work_mem = 1\nselect 1",
    "/* ; set work_mem = 1 */ select 1",
    "select $$; set work_mem = 1$$",
    "select * from pg_settings where name = 'x'",
    "select e'\\'; set role x'",
};
BOOST_DATA_TEST_CASE(nothing, data::make(kNothing)) { BOOST_TEST(found(sample) == kNone); }

const char* const kFollows[] = {
    "set statement_timeout = 0",
    "SET SESSION search_path TO a, b",
    "set \"lock_timeout\" = '1s'",
    "begin; set DateStyle = 'German'; commit",
    "-- note\nset timezone = 'UTC'",
    "select 1 -- note\n;set timezone = 'UTC'",
    "/* a */set timezone = 'UTC'",
    "set names 'UTF8'",
    "set schema 'x'",
    "set session characteristics as transaction read only",
    "set app.tenant = '1'",
    "select set_config('search_path', '', false)",
    "select a, pg_catalog.set_config('TimeZone', $1, false) from t",
    "select set_config('app.tenant', x, b) from t",
};
BOOST_DATA_TEST_CASE(settings_that_follow, data::make(kFollows)) { BOOST_TEST(found(sample) == kSettings); }

const char* const kResets[] = {"reset all",           "RESET statement_timeout", "reset time zone",
                               "select 1; reset all", "set time zone local",     "set statement_timeout to default"};
BOOST_DATA_TEST_CASE(settings_put_back, data::make(kResets)) { BOOST_TEST(found(sample) == (kSettings | kReset)); }

BOOST_AUTO_TEST_CASE(others_put_back) {
  BOOST_TEST(found("reset work_mem") == kReset);
  BOOST_TEST(found("reset role") == kReset);
  BOOST_TEST(found("reset session authorization") == kReset);
}

const char* const kLeaves[] = {
    "set work_mem = '1MB'",
    "set role r",
    "set session role r",
    "SET SESSION AUTHORIZATION r",
    "set session authorization default",
    "set app.other = 1",
    "set app . \"other\" = 1",
    "set xml option document",
    "select set_config('work_mem', '1MB', false)",
    "select set_config('work_mem', '1MB', is_local => true)",
    "select set_config($1, $2, $3)",
    "select set_config('statement_timeout' || '', '1', false)",
    "select set_config(E'statement_timeout', '1', false)",
    "explain analyze select \"set_config\" ('a', 'b', false)",
    "update pg_settings set setting = 1 where name = 'work_mem'",
    "select U&\"set\\005fconfig\"('a', 'b', false) from set_config",
    "select pg_advisory_lock(1)",
    "select 1 where pg_try_advisory_lock (1, 2)",
    "select pg_catalog.PG_ADVISORY_LOCK_SHARED(1)",
    "create temp table t (a int)",
    "CREATE LOCAL TEMPORARY TABLE t (a int) on commit delete rows",
    "create or replace temp view v as select 1",
    "create/**/temp table t (a int)",
    "select 1 into temp t",
    "select 1 into local temporary table t",
    "create table pg_temp.t (a int)",
    "create table \"pg_temp_3\".t (a int)",
    "create temp table t (a int) on commit drop; create temp table u (a int)",
    "declare c cursor with hold for select 1",
    "begin; DECLARE c insensitive scroll cursor WITH HOLD for select 1; commit",
};
BOOST_DATA_TEST_CASE(what_no_other_client_may_find, data::make(kLeaves)) { BOOST_TEST((found(sample) & kState) != 0); }

BOOST_AUTO_TEST_CASE(what_is_not_understood_is_taken_for_the_worst) {
  BOOST_TEST(found("select 'a\\'; set role x; --'") == (kSettings | kState));
  BOOST_TEST(found("set local a = 'b") == (kSettings | kState));
}

BOOST_AUTO_TEST_CASE(tags) {
  BOOST_TEST(residue_of_tag("LISTEN", false) == kState);
  BOOST_TEST(residue_of_tag("PREPARE", false) == kState);
  BOOST_TEST(residue_of_tag("DO", false) == (kSettings | kState));
  BOOST_TEST(residue_of_tag("CALL", false) == (kSettings | kState));
  BOOST_TEST(residue_of_tag("LOAD", false) == kLasting);
  BOOST_TEST(residue_of_tag("DISCARD ALL", false) == (kSettings | kReset));
  for (const char* tag :
       {"SELECT 1", "INSERT 0 1", "UPDATE 5", "SET", "RESET", "CREATE TABLE", "DECLARE CURSOR", "COMMIT",
        "PREPARE TRANSACTION", "DISCARD TEMP", "LOCK TABLE", "DELETE 1", "CLOSE CURSOR", ""})
    BOOST_TEST(residue_of_tag(tag, false) == kNone, tag);
  BOOST_TEST(residue_of_tag("SET", true) == (kSettings | kState));
  BOOST_TEST(residue_of_tag("RESET", true) == (kSettings | kReset));
  BOOST_TEST(residue_of_tag("CREATE TABLE", true) == kState);
  BOOST_TEST(residue_of_tag("DECLARE CURSOR", true) == kState);
}

// The vectors see what is at any place in a text, and nothing behind its end.
BOOST_AUTO_TEST_CASE(words_are_found_wherever_they_stand) {
  for (const char* sql : kLeaves)
    for (std::size_t before = 0; before < 40; ++before)
      for (std::size_t after : {0, 1, 15, 16, 17}) {
        std::string text = std::string(before, ' ') + sql + std::string(after, ' ');
        BOOST_TEST((found(text) & kState) != 0, text);
      }
}

BOOST_AUTO_TEST_CASE(what_is_cut_off_is_not_read) {
  const std::string sql = "set role x";
  for (std::size_t before = 0; before < 40; ++before) {
    std::string text = std::string(before, ' ') + sql;
    BOOST_TEST(!has_suspicious_word(std::string_view(text).substr(0, before + 2)));
  }
}

// A text in two overlapping pieces is never judged better than as a whole.
BOOST_AUTO_TEST_CASE(pieces_are_judged_no_better) {
  for (const char* sql : kLeaves) {
    std::string_view whole = sql;
    if (!has_suspicious_word(whole)) continue;
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
      std::size_t from = cut > kResidueOverlap ? cut - kResidueOverlap : 0;
      std::string_view seam = whole.substr(from, cut - from + kResidueOverlap);
      int all = residue_of_piece(whole.substr(0, cut)) | residue_of_piece(whole.substr(cut)) | residue_of_piece(seam);
      BOOST_TEST(all != kNone, sql << " cut at " << cut);
    }
  }
}

// The word before may be cut: INTO here.
BOOST_AUTO_TEST_CASE(a_piece_that_begins_in_the_word_before) {
  std::string text = "to" + std::string(40, ' ') + "temp t";
  BOOST_TEST(residue_of_piece(text) != kNone);
  BOOST_TEST(found("select 1 as in" + text) != kNone);
  BOOST_TEST(found("select 1 as " + text) == kNone);
}

// Whatever comes, it is read within its bounds; and what leaves something does so among any harmless statements.
BOOST_AUTO_TEST_CASE(random_texts) {
  std::mt19937 random(4711);
  const std::vector<std::string> parts = {
      "set ", "reset ", "'",  "\"",          "$$",       "--",    "\n",
      "/*",   "*/",     ";",  "temp ",       "create ",  "hold ", "with ",
      "E'",   "\\",     "(",  "set_config(", ")",        "role ", "a",
      ",",    "U&\"",   "$1", "declare ",    "\xc3\xa4", " ",     "pg_advisory_lock("};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
    const std::vector<char> exact(text.begin(), text.end());
    std::string_view sql(exact.data(), exact.size());
    BOOST_REQUIRE(found(sql) < 32);
    residue_of_piece(sql);
  }
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (auto n = random() % 4; n > 0; --n) text += std::string(kNothing[random() % std::size(kNothing)]) + "\n;";
    text += kLeaves[random() % std::size(kLeaves)];
    for (auto n = random() % 4; n > 0; --n) text += std::string("\n;") + kNothing[random() % std::size(kNothing)];
    BOOST_TEST((found(text) & kState) != 0, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
