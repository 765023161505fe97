#include "net/loop.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <thread>

#include "base/clock.h"
#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;

struct Worker final : Resumable {
  std::function<void()> work;
  int calls = 0;
  void resume() override {
    ++calls;
    if (work) work();
  }
};

struct Tombstone final : Buriable {
  explicit Tombstone(bool& gone) : is_gone(gone) {}
  ~Tombstone() override { is_gone = true; }
  bool& is_gone;
};

struct LoopFixture {
  EventLoop loop{100};
};

BOOST_FIXTURE_TEST_SUITE(net_loop, LoopFixture)

BOOST_AUTO_TEST_CASE(the_receive_buffer_has_the_size_asked_for) { BOOST_TEST(loop.receive_buffer().size() == 100u); }

BOOST_AUTO_TEST_CASE(tasks_run_in_order) {
  std::string order;
  for (char c : {'a', 'b', 'c'}) loop.post([&order, c] { order += c; });
  BOOST_TEST(order == "");
  turn(loop);
  BOOST_TEST(order == "abc");
  turn(loop);
  BOOST_TEST(order == "abc");
}

BOOST_AUTO_TEST_CASE(a_task_may_post_another_one) {
  int runs = 0;
  loop.post([&] { loop.post([&] { ++runs; }); });
  BOOST_TEST(run_until({&loop}, [&] { return runs == 1; }));
}

BOOST_AUTO_TEST_CASE(what_was_posted_can_be_run_after_the_end) {
  int runs = 0;
  loop.post([&] { ++runs; });
  loop.run_posted();
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(other_threads_post_and_stop) {
  constexpr int kThreads = 4, kTasks = 1000;
  int runs = 0;  // only the loop's thread counts
  std::thread runner([this] { loop.run(); });
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t)
    posters.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) loop.post([&runs] { ++runs; });
    });
  for (auto& thread : posters) thread.join();
  loop.stop();
  runner.join();
  BOOST_TEST(runs == kThreads * kTasks);
}

BOOST_AUTO_TEST_CASE(what_a_task_writes_is_sent) {
  Reader reader(loop);
  Ends ends = unix_pair();
  reader.stream.open(loop, ends.ours.take(), true);
  loop.post([&] { reader.stream.send_copy(as_bytes("from a task")); });
  event_base_loop(loop.base(), EVLOOP_NONBLOCK);
  BOOST_TEST(get(ends.theirs) == "from a task");
}

BOOST_AUTO_TEST_CASE(resumed_once_for_any_number_of_wishes) {
  Worker worker;
  loop.resume_later(worker);
  loop.resume_later(worker);
  BOOST_TEST(worker.calls == 0);
  loop.end_turn();
  BOOST_TEST(worker.calls == 1);
  loop.end_turn();
  BOOST_TEST(worker.calls == 1);
}

BOOST_AUTO_TEST_CASE(who_is_forgotten_is_not_resumed) {
  Worker one, two;
  one.work = [&] { loop.forget(two); };
  loop.resume_later(one);
  loop.resume_later(two);
  loop.end_turn();
  BOOST_TEST(one.calls == 1);
  BOOST_TEST(two.calls == 0);
  loop.forget(two);
}

BOOST_AUTO_TEST_CASE(what_is_written_while_resumed_is_sent_in_the_same_turn) {
  Reader reader(loop);
  Ends ends = unix_pair();
  reader.stream.open(loop, ends.ours.take(), true);
  Worker worker;
  worker.work = [&] { reader.stream.send_copy(as_bytes("x")); };
  loop.resume_later(worker);
  loop.end_turn();
  BOOST_TEST(get(ends.theirs) == "x");
}

// Somebody who always wants to go on gets his turns, but so does everybody else.
BOOST_AUTO_TEST_CASE(the_greedy_do_not_starve_the_others) {
  Worker greedy;
  greedy.work = [&] { loop.resume_later(greedy); };
  loop.resume_later(greedy);
  int tasks = 0;
  for (int i = 0; i < 5; ++i) {
    int calls = greedy.calls;
    loop.post([&] { ++tasks; });
    event_base_loop(loop.base(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    BOOST_TEST(greedy.calls > calls);
    BOOST_TEST(greedy.calls < calls + 100);
  }
  BOOST_TEST(tasks == 5);
  int calls = greedy.calls;
  event_base_loop(loop.base(), EVLOOP_ONCE);  // does not sleep while there is somebody to resume
  BOOST_TEST(greedy.calls > calls);
  loop.forget(greedy);
}

BOOST_AUTO_TEST_CASE(the_dead_stay_until_the_turn_ends) {
  bool is_gone = false;
  loop.bury(std::make_unique<Tombstone>(is_gone));
  loop.flush();
  BOOST_TEST(!is_gone);
  Worker worker;
  worker.work = [&] { BOOST_TEST(!is_gone); };
  loop.resume_later(worker);
  loop.end_turn();
  BOOST_TEST(worker.calls == 1);
  BOOST_TEST(is_gone);
}

BOOST_AUTO_TEST_CASE(the_clock_stands_still_within_a_turn) {
  std::int64_t before = now_us();
  std::int64_t now = loop.now();
  BOOST_TEST(now >= before);
  usleep(2000);
  BOOST_TEST(loop.now() == now);
  loop.end_turn();
  BOOST_TEST(loop.now() >= now + 2000);
}

BOOST_AUTO_TEST_CASE(a_timer_ticks_until_it_is_gone) {
  int ticks = 0;
  std::int64_t start = now_us();
  {
    Timer timer(loop, 10000, [&] { ++ticks; });
    BOOST_TEST(timer.period() == 10000);
    BOOST_TEST(run_until({&loop}, [&] { return ticks >= 3; }));
    BOOST_TEST(now_us() - start >= 20000);  // libevent's clock may be some milliseconds ahead
  }
  int before = ticks;
  usleep(30000);
  turn(loop);
  BOOST_TEST(ticks == before);
}

BOOST_AUTO_TEST_CASE(a_timer_takes_a_new_period) {
  int ticks = 0;
  Timer timer(loop, 3600'000'000, [&] { ++ticks; });
  turn(loop);
  BOOST_TEST(ticks == 0);
  timer.set_period(1000);
  BOOST_TEST(timer.period() == 1000);
  BOOST_TEST(run_until({&loop}, [&] { return ticks >= 3; }));
}

BOOST_AUTO_TEST_CASE(what_a_timer_writes_is_sent) {
  Reader reader(loop);
  Ends ends = unix_pair();
  reader.stream.open(loop, ends.ours.take(), true);
  Timer timer(loop, 1000, [&] { reader.stream.send_copy(as_bytes("tick")); });
  event_base_loop(loop.base(), EVLOOP_ONCE);
  BOOST_TEST(get(ends.theirs) == "tick");
}

// Output queues point into the arena: nothing of it may move or overlap before the turn ends.
BOOST_AUTO_TEST_CASE(pieces_of_the_arena_are_apart_and_stay) {
  TurnArena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::byte*, std::size_t>> pieces;
    for (std::size_t n : {1u, 100u, 16000u, 16384u, 16385u, 200000u, 1u, 5000u, 5000u, 5000u, 5000u}) {
      pieces.emplace_back(arena.allocate(n), n);
      std::fill_n(pieces.back().first, n, static_cast<std::byte>(pieces.size()));
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      auto [p, n] = pieces[i];
      BOOST_TEST(std::all_of(p, p + n, [i](std::byte b) { return b == static_cast<std::byte>(i + 1); }));
    }
    arena.reset();
  }
}

BOOST_AUTO_TEST_CASE(small_turns_use_the_same_memory_again) {
  TurnArena arena;
  std::byte* first = arena.allocate(10);
  BOOST_TEST(arena.allocate(10) == first + 10);  // side by side, so that a stream can merge them
  arena.reset();
  BOOST_TEST(arena.allocate(10) == first);
}

BOOST_AUTO_TEST_CASE(adopted_buffers_live_until_the_turn_ends_and_come_back) {
  TurnArena arena;
  BOOST_TEST(arena.recycled().capacity() == 0u);
  std::vector<std::byte> buffer(1000, std::byte{7});
  const std::byte* data = buffer.data();
  arena.adopt(std::move(buffer));
  BOOST_TEST(arena.recycled().capacity() == 0u);  // still in use
  BOOST_CHECK(data[999] == std::byte{7});
  arena.reset();
  std::vector<std::byte> again = arena.recycled();
  BOOST_TEST(again.empty());
  BOOST_TEST(again.capacity() >= 1000u);
  BOOST_TEST(again.data() == data);
  BOOST_TEST(arena.recycled().capacity() == 0u);
}

BOOST_AUTO_TEST_CASE(big_buffers_are_not_hoarded) {
  TurnArena arena;
  arena.adopt(std::vector<std::byte>(1000000));
  arena.adopt({});
  arena.reset();
  BOOST_TEST(arena.recycled().capacity() == 0u);
}

BOOST_AUTO_TEST_CASE(lists_of_segments_come_back_empty) {
  auto list = loop.take_segments();
  BOOST_TEST(list->empty());
  list->push_back({nullptr, 1});
  auto* address = list.get();
  loop.give_segments(std::move(list));
  auto again = loop.take_segments();
  BOOST_TEST(again.get() == address);
  BOOST_TEST(again->empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
