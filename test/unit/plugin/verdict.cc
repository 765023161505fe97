// How opinions of several plugins become one verdict.
#include "plugin/verdict.h"

#include <boost/test/unit_test.hpp>

#include "plugin/abi.h"
#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

RoundOpinion opinion(std::uint32_t plugin, std::uint32_t kind, const char* organization = "",
                     std::uint32_t target = 0) {
  RoundOpinion o;
  o.plugin = plugin;
  o.opinion.kind = kind;
  o.opinion.reason = 10 + plugin;
  o.opinion.organization = organization;
  o.opinion.target = target;
  return o;
}

std::string together(std::vector<RoundOpinion> opinions) {
  BatchVerdict v = combined(opinions);
  return text_of(v) + (v.kind == LOKADB_DIRECT ? " at " + std::to_string(v.target) : "");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_verdict)

BOOST_AUTO_TEST_CASE(the_strictest_prevails) {
  const auto none = opinion(0, LOKADB_NO_OPINION), direct = opinion(1, LOKADB_DIRECT, "7", 2),
             cloud = opinion(2, LOKADB_CLOUD), ask = opinion(3, LOKADB_ASK);
  BOOST_TEST(together({}) == "no opinion");
  BOOST_TEST(together({none}) == "no opinion");
  BOOST_TEST(together({none, direct}) == "direct 7 #11 at 2");
  BOOST_TEST(together({direct, none}) == "direct 7 #11 at 2");
  BOOST_TEST(together({direct, cloud}) == "cloud 7 #12");
  BOOST_TEST(together({cloud, direct}) == "cloud 7 #12");
  BOOST_TEST(together({direct, ask, cloud}) == "ask");
}

BOOST_AUTO_TEST_CASE(the_first_of_equals_gives_the_reason) {
  BOOST_TEST(together({opinion(1, LOKADB_CLOUD), opinion(2, LOKADB_CLOUD)}) == "cloud  #11");
  BOOST_TEST(together({opinion(1, LOKADB_DIRECT, "7", 1), opinion(2, LOKADB_DIRECT, "7", 1)}) == "direct 7 #11 at 1");
}

BOOST_AUTO_TEST_CASE(plugins_that_disagree_are_a_refusal) {
  std::string organizations = "refuse XX000 plugins name different organizations for one batch";
  BOOST_TEST(together({opinion(1, LOKADB_DIRECT, "7"), opinion(2, LOKADB_DIRECT, "8")}) == organizations);
  BOOST_TEST(together({opinion(1, LOKADB_DIRECT, "7"), opinion(2, LOKADB_CLOUD, "8")}) == organizations);
  BOOST_TEST(together({opinion(1, LOKADB_CLOUD, "7"), opinion(2, LOKADB_CLOUD, "8")}) == organizations);
  BOOST_TEST(together({opinion(1, LOKADB_DIRECT, "7", 0), opinion(2, LOKADB_DIRECT, "7", 1)}) ==
             "refuse XX000 plugins name different targets for one batch");
}

BOOST_AUTO_TEST_CASE(a_told_text_is_cut_between_characters) {
  BOOST_TEST(told_text("short") == "short");
  std::string long_one(kMostToldText - 1, 'a');
  BOOST_TEST(told_text(long_one + "\xc3\xa9") == long_one + " ...");
  BOOST_TEST(told_text(long_one + "bc") == long_one + "b ...");
  BOOST_TEST(told_text(std::string_view("a\0b", 3)) == "a?b");
}

BOOST_AUTO_TEST_CASE(sqlstates_of_errors) {
  for (const char* good : {"42501", "XX000", "LK001", "57014"}) BOOST_TEST(is_error_sqlstate(good), good);
  for (const char* bad : {"", "4250", "425011", "4250a", "00000", "00001", "42 01"})
    BOOST_TEST(!is_error_sqlstate(bad), bad);
}

BOOST_AUTO_TEST_SUITE_END()
