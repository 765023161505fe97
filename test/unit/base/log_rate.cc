#include "base/log_rate.h"

#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

BOOST_AUTO_TEST_SUITE(base_log_rate)

BOOST_AUTO_TEST_CASE(one_line_in_each_period_which_counts_those_left_out) {
  LogRate rate(1000);
  std::string left_out = "something";
  BOOST_TEST(rate.is_due(5, left_out));
  BOOST_TEST(left_out.empty());
  BOOST_TEST(!rate.is_due(5, left_out));
  BOOST_TEST(!rate.is_due(1004, left_out));
  BOOST_TEST(rate.is_due(1005, left_out));
  BOOST_TEST(left_out == " (and 2 more since the last line)");
  BOOST_TEST(rate.is_due(9000, left_out));
  BOOST_TEST(left_out.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
