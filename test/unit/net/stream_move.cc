// Streams that change loops, in one thread and between threads.
#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <future>
#include <thread>

#include "net/stream.h"
#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;
namespace data = boost::unit_test::data;

struct TwoLoops {
  EventLoop first{4096}, second{4096};
  Reader reader{first};
  Stream& stream = reader.stream;
  Ends ends = unix_pair();

  void move_to(EventLoop& loop) {
    stream.detach();
    reader.loop = &loop;
    stream.attach(loop);
  }
};

BOOST_FIXTURE_TEST_SUITE(net_stream_move, TwoLoops)

BOOST_AUTO_TEST_CASE(events_come_from_the_new_loop) {
  stream.open(first, ends.ours.take(), true);
  reader.drain_on_events();
  move_to(second);
  put(ends.theirs, "after");
  turn(first);
  BOOST_TEST(reader.events == 0);
  turn(second);
  BOOST_TEST(reader.received == "after");
  move_to(first);
  put(ends.theirs, ", and back");
  turn(second);
  turn(first);
  BOOST_TEST(reader.received == "after, and back");
}

BOOST_AUTO_TEST_CASE(bytes_that_come_meanwhile_are_told_at_the_new_loop) {
  stream.open(first, ends.ours.take(), true);
  stream.detach();
  put(ends.theirs, "meanwhile");
  turn(first);
  BOOST_TEST(reader.events == 0);
  stream.attach(second);
  turn(second);
  BOOST_TEST(reader.events == 1);
  reader.loop = &second;
  BOOST_CHECK(reader.drain() == ReadStatus::Empty);
  BOOST_TEST(reader.received == "meanwhile");
}

BOOST_AUTO_TEST_CASE(an_end_that_comes_meanwhile_is_told_too) {
  stream.open(first, ends.ours.take(), true);
  stream.detach();
  ends.theirs.reset();
  stream.attach(second);
  turn(second);
  BOOST_TEST(reader.events == 1);
  BOOST_CHECK(reader.drain() == ReadStatus::Eof);
}

BOOST_AUTO_TEST_CASE(what_was_told_but_not_read_is_not_forgotten) {
  stream.open(first, ends.ours.take(), true);
  put(ends.theirs, "told");
  turn(first);
  move_to(second);
  BOOST_TEST(stream.is_readable());
  BOOST_CHECK(reader.drain() == ReadStatus::Empty);
  BOOST_TEST(reader.received == "told");
}

BOOST_AUTO_TEST_CASE(unsent_bytes_leave_before_the_move) {
  stream.open(first, ends.ours.take(), true);
  {
    std::string borrowed = "of the first loop's turn";
    stream.send(as_bytes(borrowed));
    stream.detach();
  }
  BOOST_TEST(!stream.has_unsent());
  BOOST_TEST(get(ends.theirs) == "of the first loop's turn");
  stream.send(as_bytes("to nobody"));  // between two loops nothing can be sent
  stream.attach(second);
  second.end_turn();
  first.end_turn();
  BOOST_TEST(get(ends.theirs) == "");
}

BOOST_DATA_TEST_CASE(the_backlog_moves_along, data::make({false, true}), is_unix) {
  Ends pair = is_unix ? unix_pair() : tcp_pair();
  stream.open(first, pair.ours.take(), is_unix);
  std::string all;
  while (!stream.is_blocked()) {
    std::string piece = pattern(300000);
    stream.send(as_bytes(piece));
    first.end_turn();
    all += piece;
  }
  move_to(second);
  stream.send_copy(as_bytes("last"));
  second.end_turn();
  all += "last";
  std::string got;
  BOOST_TEST(run_until({&second}, [&] {
    for (std::string piece = get(pair.theirs); !piece.empty(); piece = get(pair.theirs)) got += piece;
    return got.size() >= all.size();
  }));
  BOOST_TEST((got == all));
  BOOST_TEST(!stream.is_blocked());
}

// Two threads, one stream that goes to and fro while its peer asks: each question is answered once.
BOOST_AUTO_TEST_CASE(a_stream_moves_between_running_loops) {
  std::thread threads[] = {std::thread([this] { first.run(); }), std::thread([this] { second.run(); })};
  std::atomic<int> wrong_thread{0};
  std::thread::id owner;  // only read and written by the loop that has the stream
  auto attach_to = [&](EventLoop& loop) {
    reader.loop = &loop;
    owner = std::this_thread::get_id();
    stream.attach(loop);
  };
  reader.when_event = [&] {
    if (std::this_thread::get_id() != owner) ++wrong_thread;
    ReadResult r = stream.read(reader.loop->receive_buffer());
    if (r.status == ReadStatus::Data) stream.send(Bytes(reader.loop->receive_buffer()).first(r.size));
  };
  auto run_on = [](EventLoop& loop, auto task) {
    std::promise<void> done;
    loop.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  };
  run_on(first, [&] {
    stream.open(first, ends.ours.take(), true);
    owner = std::this_thread::get_id();
  });

  fcntl(ends.theirs, F_SETFL, 0);  // waits for each answer
  timeval limit{5, 0};
  setsockopt(ends.theirs, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  EventLoop *from = &first, *to = &second;
  for (int i = 0; i < 200; ++i) {
    std::string question = "question " + std::to_string(i);
    put(ends.theirs, question);
    from->post([&, to] {
      stream.detach();
      to->post([&, to] { attach_to(*to); });
    });
    std::string answer;
    for (std::string piece; answer.size() < question.size(); answer += piece) {
      piece = get(ends.theirs);
      BOOST_REQUIRE(!piece.empty());
    }
    BOOST_TEST(answer == question);
    run_on(*from, [] {});
    run_on(*to, [] {});
    std::swap(from, to);
  }
  run_on(*from, [&] { stream.close(); });
  first.stop();
  second.stop();
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong_thread == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
