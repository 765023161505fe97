// The names under which the counters are shown. The lists are those of PgBouncer 1.25.2's console.
#include "pool/stats.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "admin/statistics.h"
#include "base/text.h"

namespace lokadb {
namespace {

using Names = std::vector<std::string>;

// Each column's name; all but the first must be numeric.
Names names_of(const std::string& columns) {
  Names words = split_list(columns), names;
  BOOST_REQUIRE(words.size() % 2 == 0);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    BOOST_TEST(words[i + 1] == (i == 0 ? "t" : "n"));
    names.push_back(words[i]);
  }
  return names;
}

void check_unique(const Names& names) {
  BOOST_TEST(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

BOOST_AUTO_TEST_SUITE(pool_stats)

BOOST_AUTO_TEST_CASE(columns_of_show_stats) {
  Names names = names_of(stats_columns("stats"));
  Names expected{"database",
                 "total_server_assignment_count",
                 "total_xact_count",
                 "total_query_count",
                 "total_received",
                 "total_sent",
                 "total_xact_time",
                 "total_query_time",
                 "total_wait_time",
                 "total_client_parse_count",
                 "total_server_parse_count",
                 "total_bind_count",
                 "total_client_login_count",
                 "avg_server_assignment_count",
                 "avg_xact_count",
                 "avg_query_count",
                 "avg_recv",
                 "avg_sent",
                 "avg_xact_time",
                 "avg_query_time",
                 "avg_wait_time",
                 "avg_client_parse_count",
                 "avg_server_parse_count",
                 "avg_bind_count",
                 "avg_client_login_count"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  check_unique(names);
}

BOOST_AUTO_TEST_CASE(columns_of_show_stats_totals) {
  Names names = names_of(stats_columns("stats_totals"));
  Names expected{"database",           "server_assignment_count",
                 "xact_count",         "query_count",
                 "bytes_received",     "bytes_sent",
                 "xact_time",          "query_time",
                 "wait_time",          "client_parse_count",
                 "server_parse_count", "bind_count",
                 "client_login_count"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  check_unique(names);
}

BOOST_AUTO_TEST_CASE(columns_of_show_stats_averages) {
  Names names = names_of(stats_columns("stats_averages"));
  Names expected{"database",
                 "server_assignment_count",
                 "xact_count",
                 "query_count",
                 "bytes_received",
                 "bytes_sent",
                 "xact_time",
                 "query_time",
                 "wait_time",
                 "avg_client_parse_count",
                 "avg_server_parse_count",
                 "avg_bind_count",
                 "avg_client_login_count"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  check_unique(names);
}

BOOST_AUTO_TEST_CASE(rows_of_show_totals) {
  Names names;
  for (const auto& counter : kCounters) names.emplace_back(counter.in_totals);
  Names expected{"server_assignment_count",
                 "xact_count",
                 "query_count",
                 "client_bytes",
                 "server_bytes",
                 "xact_time",
                 "query_time",
                 "wait_time",
                 "ps_client_parse_count",
                 "ps_server_parse_count",
                 "ps_bind_count",
                 "client_login_count"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  check_unique(names);
}

// Times are averaged over what they belong to, all else over the seconds.
BOOST_AUTO_TEST_CASE(what_averages_are_taken_per) {
  for (const auto& counter : kCounters) {
    AveragePer expected = counter.total == "xact_time"    ? AveragePer::Transaction
                          : counter.total == "query_time" ? AveragePer::Query
                          : counter.total == "wait_time"  ? AveragePer::Assignment
                                                          : AveragePer::Second;
    BOOST_CHECK_MESSAGE(counter.per == expected, counter.total);
  }
}

BOOST_AUTO_TEST_CASE(every_row_counts_something_else) {
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    PoolCounters block;
    (block.*kCounters[i].member).add(5);
    CounterValues values;
    values.add(block);
    for (std::size_t k = 0; k < kCounterCount; ++k) BOOST_TEST(values.v[k] == (k == i ? 5u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(sums_over_blocks_and_over_sums) {
  PoolCounters one, two;
  one.xact_count.add(3);
  one.xact_count.add(4);
  two.xact_count.add(10);
  two.bytes_sent.add(1ull << 40);
  CounterValues values, all;
  values.add(one);
  values.add(two);
  all.add(values);
  all.add(values);
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    std::uint64_t expected = kCounters[i].total == "xact_count" ? 17u : kCounters[i].total == "sent" ? 1ull << 40 : 0u;
    BOOST_TEST(values.v[i] == expected);
    BOOST_TEST(all.v[i] == 2 * expected);
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_two_workers_share_no_cache_line) {
  BOOST_TEST(alignof(PoolCounters) >= 64u);
  BOOST_TEST(sizeof(PoolCounters) % 64 == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
