#include "pool/parameters.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

namespace lokadb {
namespace {

using Optional = std::optional<std::string>;

struct ParametersFixture {
  TrackedNames names{{"IntervalStyle", "search_path"}};
  static constexpr std::size_t kIntervalStyle = 5, kSearchPath = 6;

  // Values of the given names, all others open.
  struct Value {
    std::size_t index;
    std::string text;
  };
  ParameterSetPtr set(const std::vector<Value>& given = {}) const {
    ParameterValues values(names.size());
    for (const auto& v : given) values[v.index] = v.text;
    return intern_parameters(std::move(values));
  }
  std::string sql(const ParameterSetPtr& wanted, const ParameterSetPtr& there) const {
    return set_statements(names, *wanted, *there, *there);
  }
  std::string sql_for(std::size_t index, const std::string& value) const {
    return sql(set({{index, value}}), set({{index, "something else"}}));
  }
};
constexpr std::size_t kOurs = 11;  // names that PgBouncer would have to be told
constexpr std::size_t kEncoding = TrackedNames::kClientEncoding, kDate = TrackedNames::kDateStyle,
                      kZone = TrackedNames::kTimeZone, kStrings = TrackedNames::kStandardStrings,
                      kApplication = TrackedNames::kApplicationName;

BOOST_FIXTURE_TEST_SUITE(pool_parameters, ParametersFixture)

BOOST_AUTO_TEST_CASE(the_tracked_names) {
  BOOST_TEST(TrackedNames({}).size() == 5u + kOurs);
  BOOST_TEST(names.size() == 7u + kOurs - 2);
  BOOST_TEST(!names.is_addition(kSearchPath));
  BOOST_TEST(names.is_addition(names.index("statement_timeout").value()));
  BOOST_TEST(TrackedNames({}).is_addition(kIntervalStyle));
  BOOST_TEST(names.name(kEncoding) == "client_encoding");
  BOOST_TEST(names.name(kDate) == "DateStyle");
  BOOST_TEST(names.name(kZone) == "TimeZone");
  BOOST_TEST(names.name(kStrings) == "standard_conforming_strings");
  BOOST_TEST(names.name(kApplication) == "application_name");
  BOOST_TEST(names.name(kIntervalStyle) == "IntervalStyle");
  BOOST_TEST(names.name(kSearchPath) == "search_path");
}

BOOST_AUTO_TEST_CASE(names_are_found_without_case) {
  BOOST_TEST(names.index("datestyle").value() == kDate);
  BOOST_TEST(names.index("TIMEZONE").value() == kZone);
  BOOST_TEST(names.index("intervalstyle").value() == kIntervalStyle);
  BOOST_TEST(!names.index("work_mem"));
  BOOST_TEST(!names.index(""));
}

BOOST_AUTO_TEST_CASE(a_name_is_tracked_once) {
  TrackedNames twice({"timezone", "a", "A", "b"});
  BOOST_TEST(twice.size() == 7u + kOurs);
  BOOST_TEST(twice.index("a").value() == 5u);
  BOOST_TEST(twice.index("b").value() == 6u);
}

BOOST_AUTO_TEST_CASE(equal_sets_are_one_object) {
  auto one = set({{kZone, "GMT"}, {kDate, "ISO"}});
  BOOST_TEST(one == set({{kDate, "ISO"}, {kZone, "GMT"}}));
  BOOST_TEST(one != set({{kZone, "gmt"}, {kDate, "ISO"}}));
  BOOST_TEST(one != set({{kZone, "GMT"}}));
  BOOST_TEST(one.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(an_open_value_is_not_an_empty_one) {
  auto open = set(), empty = set({{kApplication, ""}});
  BOOST_TEST(open != empty);
  BOOST_TEST(!open->values()[kApplication].has_value());
  BOOST_TEST(empty->values()[kApplication].value() == "");
  // The same texts at other places are another set, too.
  BOOST_TEST(set({{kEncoding, "-"}}) != set({{kDate, "-"}}));
  BOOST_TEST(set({{kEncoding, "a=b"}}) != set({{kEncoding, "a"}, {kDate, "b"}}));
}

BOOST_AUTO_TEST_CASE(a_set_is_forgotten_with_its_last_owner) {
  std::weak_ptr<const ParameterSet> watch;
  {
    auto one = set({{kZone, "Mars/Olympus"}});
    watch = one;
    BOOST_TEST(watch.lock() == set({{kZone, "Mars/Olympus"}}));
  }
  BOOST_TEST(watch.expired());
  BOOST_TEST(set({{kZone, "Mars/Olympus"}})->values()[kZone].value() == "Mars/Olympus");
}

BOOST_AUTO_TEST_CASE(threads_may_intern_and_let_go_at_the_same_time) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, &wrong] {
      for (int i = 0; i < 5000; ++i) {
        auto one = set({{kZone, std::to_string(i % 3)}});
        auto two = set({{kZone, std::to_string(i % 3)}});
        if (one != two || one->values()[kZone] != std::to_string(i % 3)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(one_value_replaced) {
  auto one = set({{kZone, "GMT"}});
  BOOST_TEST(with_parameter(one, kZone, "GMT") == one);
  BOOST_TEST(with_parameter(one, kZone, "CET") == set({{kZone, "CET"}}));
  BOOST_TEST(with_parameter(one, kDate, "ISO") == set({{kZone, "GMT"}, {kDate, "ISO"}}));
  BOOST_TEST(with_parameter(one, kApplication, "") == set({{kZone, "GMT"}, {kApplication, ""}}));
  BOOST_TEST(one->values()[kZone].value() == "GMT");
}

BOOST_AUTO_TEST_CASE(the_spelling_of_the_server_is_taken_over) {
  auto wanted = set({{kEncoding, "utf8"}, {kZone, "cet"}, {kApplication, "psql"}});
  auto there = set({{kEncoding, "UTF8"}, {kZone, "CET"}, {kDate, "ISO, MDY"}});
  BOOST_TEST(in_spelling_of(*there, *wanted) == set({{kEncoding, "UTF8"}, {kZone, "CET"}, {kApplication, "psql"}}));
}

BOOST_AUTO_TEST_CASE(nothing_is_set_that_is_there_already) {
  auto one = set({{kZone, "GMT"}, {kEncoding, "UTF8"}});
  BOOST_TEST(sql(one, one) == "");
  BOOST_TEST(sql(set({{kZone, "gmt"}, {kEncoding, "utf8"}}), one) == "");  // compared without case
  BOOST_TEST(sql(set(), one) == "");
}

BOOST_AUTO_TEST_CASE(case_counts_in_names_and_in_paths) {
  auto there = set({{kApplication, "app"}, {kSearchPath, "\"app\""}});
  BOOST_TEST(sql(there, there) == "");
  BOOST_TEST(sql(set({{kApplication, "App"}}), there) == "SET application_name='App';");
  BOOST_TEST(sql(set({{kSearchPath, "\"App\""}}), there) ==
             "SELECT pg_catalog.set_config('search_path', '\"App\"', false);");
}

BOOST_AUTO_TEST_CASE(what_is_not_known_to_be_there_is_set) {
  BOOST_TEST(sql(set({{kZone, "GMT"}, {kIntervalStyle, "iso_8601"}}), set({{kZone, "CET"}})) ==
             "SET TimeZone='GMT';SET IntervalStyle='iso_8601';");
}

BOOST_AUTO_TEST_CASE(what_is_open_is_put_back_if_its_default_is_not_known) {
  BOOST_TEST(set_statements(names, *set(), *set(), *set({{kSearchPath, "a"}})) == "RESET search_path;");
  BOOST_TEST(set_statements(names, *set(), *set(), *set()) == "");
}

BOOST_AUTO_TEST_CASE(differences_are_set_in_the_order_of_the_names) {
  auto wanted = set({{kIntervalStyle, "iso_8601"}, {kApplication, "psql"}, {kEncoding, "LATIN1"}, {kZone, "GMT"}});
  auto there = set({{kEncoding, "UTF8"}, {kZone, "GMT"}, {kApplication, ""}, {kIntervalStyle, "postgres"}});
  BOOST_TEST(sql(wanted, there) ==
             "SET client_encoding='LATIN1';SET application_name='psql';SET IntervalStyle='iso_8601';");
}

BOOST_AUTO_TEST_CASE(an_open_value_is_wanted_as_in_the_defaults) {
  auto there = set({{kZone, "CET"}, {kApplication, "other"}, {kDate, "German"}});
  auto defaults = set({{kZone, "GMT"}, {kApplication, ""}, {kDate, "ISO, MDY"}});
  BOOST_TEST(set_statements(names, *set({{kDate, "SQL"}}), *defaults, *there) ==
             "SET DateStyle='SQL';SET TimeZone='GMT';SET application_name='';");
  BOOST_TEST(set_statements(names, *set({{kZone, "CET"}}), *there, *there) == "");
}

BOOST_AUTO_TEST_CASE(quotes_are_doubled) {
  BOOST_TEST(sql_for(kApplication, "it's") == "SET application_name='it''s';");
  BOOST_TEST(sql_for(kApplication, "'") == "SET application_name='''';");
  BOOST_TEST(sql_for(kApplication, "x'; drop table t; --") == "SET application_name='x''; drop table t; --';");
  BOOST_TEST(sql_for(kApplication, "say \"hi\"") == "SET application_name='say \"hi\"';");
  BOOST_TEST(sql_for(kApplication, "") == "SET application_name='';");
}

// A server reports the list with each name quoted as it must be: quoting the whole would make one name of it.
BOOST_AUTO_TEST_CASE(a_search_path_stays_a_list) {
  BOOST_TEST(sql_for(kSearchPath, "\"$user\", public") ==
             "SELECT pg_catalog.set_config('search_path', '\"$user\", public', false);");
  BOOST_TEST(sql_for(kSearchPath, "a; drop table t") ==
             "SELECT pg_catalog.set_config('search_path', 'a; drop table t', false);");
}

// Not as \\, which SJIS and others could take for the end of a character and a backslash.
BOOST_AUTO_TEST_CASE(a_backslash_is_one_under_any_standard_conforming_strings) {
  BOOST_TEST(sql_for(kApplication, "C:\\app\\") == "SET application_name=E'C:\\134app\\134';");
  BOOST_TEST(sql_for(kApplication, "\\'; drop table t; --") == "SET application_name=E'\\134''; drop table t; --';");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
