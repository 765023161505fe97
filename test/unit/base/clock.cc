#include "base/clock.h"

#include <boost/test/unit_test.hpp>
#include <ctime>
#include <thread>

namespace lokadb {
namespace {

BOOST_AUTO_TEST_SUITE(base_clock)

BOOST_AUTO_TEST_CASE(now_is_microseconds_of_the_monotonic_clock) {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  std::int64_t before = ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
  std::int64_t now = now_us();
  clock_gettime(CLOCK_MONOTONIC, &ts);
  BOOST_TEST(now >= before);
  BOOST_TEST(now <= ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
  BOOST_TEST(now > 0);  // 0 stands for "never"
}

BOOST_AUTO_TEST_CASE(wall_is_microseconds_since_1970) {
  std::int64_t before = std::time(nullptr);
  std::int64_t wall = wall_us() / 1000000;
  BOOST_TEST(wall >= before - 1);  // time() may lag behind by a tick
  BOOST_TEST(wall <= std::time(nullptr) + 1);
}

BOOST_AUTO_TEST_CASE(time_passes) {
  std::int64_t before = now_us();
  std::this_thread::sleep_for(Micros(2000));
  BOOST_TEST(now_us() - before >= 2000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
