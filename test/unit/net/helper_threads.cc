#include "net/helper_threads.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;

// Work that stands still until it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  int inside = 0;
  void pass() {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [this] { return is_open; });
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside >= count; });
  }
  void open() {
    std::lock_guard guard(mutex);
    is_open = true;
    changed.notify_all();
  }
};

struct HelperFixture {
  EventLoop loop{100};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  HelperThreads helpers{2, 3};
  ~HelperFixture() { gate->open(); }

  std::function<void()> wait_at_gate() {
    return [gate = gate] { gate->pass(); };
  }
};

BOOST_FIXTURE_TEST_SUITE(net_helper_threads, HelperFixture)

BOOST_AUTO_TEST_CASE(work_is_done_elsewhere_and_told_here) {
  std::thread::id worked, told;
  auto ticket = helpers.run(
      loop, [&] { worked = std::this_thread::get_id(); }, [&] { told = std::this_thread::get_id(); });
  BOOST_REQUIRE(ticket);
  BOOST_TEST(run_until({&loop}, [&] { return told != std::thread::id(); }));
  BOOST_TEST((told == std::this_thread::get_id()));
  BOOST_TEST((worked != told && worked != std::thread::id()));
}

BOOST_AUTO_TEST_CASE(work_that_throws_is_told_as_done) {
  bool told = false;
  auto ticket = helpers.run(
      loop, [] { throw std::runtime_error("on purpose"); }, [&] { told = true; });
  BOOST_TEST(run_until({&loop}, [&] { return told; }));
}

BOOST_AUTO_TEST_CASE(two_at_a_time_three_in_line_and_no_more) {
  std::vector<HelperThreads::Ticket> tickets;
  std::atomic<int> told = 0;
  for (int i = 0; i < 5; ++i) {
    auto ticket = helpers.run(loop, wait_at_gate(), [&] { ++told; });
    BOOST_REQUIRE(ticket);
    tickets.push_back(std::move(*ticket));
    if (i < 2) gate->wait_for(i + 1);
  }
  BOOST_TEST(helpers.waiting_count() == 3u);
  BOOST_TEST(!helpers.run(loop, wait_at_gate(), [] {}));
  gate->open();
  BOOST_TEST(run_until({&loop}, [&] { return told == 5; }));
}

BOOST_AUTO_TEST_CASE(a_ticket_that_is_gone_takes_its_work_along) {
  auto first = helpers.run(loop, wait_at_gate(), [] {});
  auto second = helpers.run(loop, wait_at_gate(), [] {});
  gate->wait_for(2);
  bool worked = false, told = false;
  {
    auto dropped = helpers.run(
        loop, [&] { worked = true; }, [&] { told = true; });
    BOOST_TEST(helpers.waiting_count() == 1u);
  }
  BOOST_TEST(helpers.waiting_count() == 0u);
  bool last = false;
  auto third = helpers.run(
      loop, [] {}, [&] { last = true; });
  gate->open();
  BOOST_TEST(run_until({&loop}, [&] { return last; }));
  BOOST_TEST(!worked);
  BOOST_TEST(!told);
}

BOOST_AUTO_TEST_CASE(the_end_leaves_busy_threads_behind) {
  bool told = false;
  BOOST_REQUIRE(run_until({&loop}, [] { return HelperThreads::left_behind() == 0; }));  // of the tests before
  auto busy = helpers.run(loop, wait_at_gate(), [&] { told = true; });
  gate->wait_for(1);
  helpers.stop();
  BOOST_TEST(HelperThreads::left_behind() == 1);
  BOOST_TEST(!helpers.run(
      loop, [] {}, [] {}));
  gate->open();
  BOOST_TEST(run_until({&loop}, [] { return HelperThreads::left_behind() == 0; }));
  turn(loop);
  BOOST_TEST(!told);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
