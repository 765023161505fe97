#include "net/stream.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <cerrno>

#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;
namespace data = boost::unit_test::data;

// A stream and the other end of its connection.
struct Connection {
  EventLoop loop{4096};
  Reader reader{loop};
  Stream& stream = reader.stream;
  Fd peer;

  explicit Connection(Ends ends = unix_pair(), bool is_unix = true, bool is_accepted = false)
      : peer(ends.theirs.take()) {
    if (is_accepted) {
      stream.open_accepted(loop, ends.ours.take(), is_unix);
      stream.watch();
    } else {
      stream.open(loop, ends.ours.take(), is_unix);
    }
    turn(loop);
    reader.events = 0;
  }
  ReadResult read() { return stream.read(loop.receive_buffer()); }

  // Sends until the kernel takes no more, and once again; all that was given to send.
  std::string fill() {
    std::string all;
    // The kernel may have taken more meanwhile: blocked is what it is in the end.
    for (bool was_blocked = false; !was_blocked || !stream.is_blocked();) {
      was_blocked = stream.is_blocked();
      std::string piece = pattern(200000 + all.size() % 1000);
      stream.send(as_bytes(piece));
      loop.end_turn();
      all += piece;
      BOOST_REQUIRE(all.size() < 100000000u);
    }
    return all;
  }
  std::string read_all_at_peer(std::size_t size) {
    std::string all;
    run_until({&loop}, [&] {
      for (std::string piece = get(peer); !piece.empty(); piece = get(peer)) all += piece;
      return all.size() >= size;
    });
    return all;
  }
};

// The peer sees where each send began and ended.
struct RecordConnection : Connection {
  RecordConnection() : Connection(unix_pair(SOCK_SEQPACKET)) {}
};
struct TcpConnection : Connection {
  TcpConnection() : Connection(tcp_pair(), false) {}
};

BOOST_FIXTURE_TEST_SUITE(net_stream, Connection)

// --- reading ---

BOOST_AUTO_TEST_CASE(bytes_are_told_by_one_event) {
  BOOST_TEST(stream.is_open());
  BOOST_TEST(!stream.is_readable());
  BOOST_CHECK(read().status == ReadStatus::Empty);
  put(peer, "hello");
  turn(loop);
  BOOST_TEST(reader.events == 1);
  BOOST_TEST(stream.is_readable());
  ReadResult r = read();
  BOOST_CHECK(r.status == ReadStatus::Data);
  BOOST_TEST(as_text(Bytes(loop.receive_buffer()).first(r.size)) == "hello");
  BOOST_TEST(!stream.is_readable());  // it took less than it could: nothing is left
  turn(loop);
  BOOST_TEST(reader.events == 1);
}

BOOST_AUTO_TEST_CASE(a_pause_loses_nothing) {
  put(peer, "one");
  turn(loop);
  for (int i = 0; i < 3; ++i) turn(loop);
  BOOST_TEST(stream.is_readable());
  put(peer, "two");
  turn(loop);
  BOOST_CHECK(reader.drain() == ReadStatus::Empty);
  BOOST_TEST(reader.received == "onetwo");
}

BOOST_AUTO_TEST_CASE(a_full_buffer_leaves_the_stream_readable) {
  put(peer, pattern(4096 + 10));
  turn(loop);
  BOOST_TEST(read().size == 4096u);
  BOOST_TEST(stream.is_readable());
  BOOST_TEST(read().size == 10u);
  BOOST_TEST(!stream.is_readable());
}

BOOST_AUTO_TEST_CASE(the_end_comes_after_the_data) {
  put(peer, "last words");
  peer.reset();
  turn(loop);
  BOOST_CHECK(reader.drain() == ReadStatus::Eof);
  BOOST_TEST(reader.received == "last words");
  BOOST_CHECK(read().status == ReadStatus::Eof);  // and stays
}

BOOST_AUTO_TEST_CASE(the_end_alone_is_an_event_too) {
  peer.reset();
  turn(loop);
  BOOST_TEST(reader.events == 1);
  BOOST_CHECK(read().status == ReadStatus::Eof);
}

BOOST_AUTO_TEST_CASE(a_reset_is_a_failure) {
  stream.send(as_bytes("never read"));
  loop.end_turn();
  peer.reset();
  turn(loop);
  BOOST_CHECK(read().status == ReadStatus::Failed);
}

BOOST_AUTO_TEST_CASE(one_can_look_without_reading) {
  BOOST_TEST(!stream.has_input_waiting());
  put(peer, "x");
  BOOST_TEST(stream.has_input_waiting());
  BOOST_CHECK(read().status == ReadStatus::Empty);  // no event yet
  stream.assume_readable();
  BOOST_TEST(read().size == 1u);
  BOOST_TEST(!stream.has_input_waiting());
  peer.reset();
  BOOST_TEST(stream.has_input_waiting());
}

BOOST_AUTO_TEST_CASE(the_end_is_seen_behind_bytes_that_nobody_read) {
  BOOST_TEST(!stream.has_peer_ended());
  put(peer, "x");
  BOOST_TEST(!stream.has_peer_ended());
  peer.reset();
  BOOST_TEST(stream.has_peer_ended());
  stream.assume_readable();
  BOOST_TEST(read().size == 1u);
}

// --- sending ---

BOOST_FIXTURE_TEST_CASE(everything_of_a_turn_leaves_in_one_send, RecordConnection) {
  std::string one = "one,", two = "two,";
  stream.send(as_bytes(one));
  stream.send(as_bytes(two));
  {
    std::string passing = "three,";
    stream.send_copy(as_bytes(passing));
    passing.assign(6, '-');
  }
  stream.send(as_bytes("four"));
  stream.send({});
  BOOST_TEST(stream.has_unsent());
  BOOST_TEST(get(peer) == "");
  loop.end_turn();
  BOOST_TEST(!stream.has_unsent());
  BOOST_TEST(get(peer) == "one,two,three,four");
  stream.send(as_bytes("five"));
  loop.end_turn();
  BOOST_TEST(get(peer) == "five");
  BOOST_TEST(get(peer) == "");
}

// More pieces than one system call can take, but all next to each other in memory: they are one.
BOOST_FIXTURE_TEST_CASE(neighbouring_pieces_are_merged, RecordConnection) {
  std::string text = pattern(5000);
  for (std::size_t at = 0; at < text.size(); ++at) stream.send(as_bytes(text).subspan(at, 1));
  BOOST_TEST(!stream.is_blocked());  // had they stayed apart, some would have been copied to the backlog
  loop.end_turn();
  BOOST_TEST(get(peer) == text);
}

BOOST_AUTO_TEST_CASE(many_separate_pieces_arrive_in_order) {
  std::string text = pattern(6000), expected;
  for (std::size_t at = 0; at + 2 < text.size(); at += 3) {
    stream.send(as_bytes(text).subspan(at, 2));
    expected += text.substr(at, 2);
  }
  loop.end_turn();
  BOOST_TEST(get(peer) == expected);
  BOOST_TEST(!stream.has_unsent());
}

BOOST_FIXTURE_TEST_CASE(a_flush_sends_at_once, RecordConnection) {
  stream.send(as_bytes("one"));
  stream.flush();
  BOOST_TEST(get(peer) == "one");
  stream.send(as_bytes("two"));
  loop.flush();
  BOOST_TEST(get(peer) == "two");
}

BOOST_AUTO_TEST_CASE(a_peer_that_reads_causes_no_events) {
  for (int i = 0; i < 5; ++i) {
    stream.send(as_bytes("text"));
    loop.end_turn();
    get(peer);
    turn(loop);
  }
  BOOST_TEST(reader.events == 0);
}

BOOST_DATA_TEST_CASE(what_the_peer_does_not_read_waits, data::make({false, true}) * data::make({false, true}), is_unix,
                     is_accepted) {
  Connection c(is_unix ? unix_pair() : tcp_pair(), is_unix, is_accepted);
  std::string all = c.fill();
  BOOST_TEST(c.stream.is_blocked());
  BOOST_TEST(c.stream.backlog_size() > 0u);  // how much: the kernel goes on taking some for a moment
  BOOST_TEST(c.stream.backlog_size() < all.size());
  BOOST_TEST(c.read_all_at_peer(all.size()) == all);
  BOOST_TEST(!c.stream.is_blocked());
  BOOST_TEST(c.stream.backlog_size() == 0u);
  BOOST_TEST(c.reader.events > 0);  // told that it may go on
  int events = c.reader.events;
  std::string again = c.fill();  // and once more
  BOOST_TEST(c.read_all_at_peer(again.size()) == again);
  BOOST_TEST(c.reader.events > events);
  BOOST_TEST(c.reader.failures == 0);
}

BOOST_AUTO_TEST_CASE(who_sends_first_is_told_of_first) {
  Ends ends[] = {tcp_pair(), tcp_pair(), tcp_pair()};
  Reader readers[] = {Reader(loop), Reader(loop), Reader(loop)};
  std::string order;
  for (int i : {2, 1, 0}) {
    readers[i].when_event = [&order, i] { order += std::to_string(i); };
    put(ends[i].theirs, "hello");
    readers[i].stream.open_accepted(loop, ends[i].ours.take(), false);
    BOOST_TEST(readers[i].stream.is_readable());
    BOOST_CHECK(readers[i].drain() == ReadStatus::Empty);
    readers[i].stream.watch();
  }
  for (int i : {0, 1, 2}) put(ends[i].theirs, "x");
  run_until({&loop}, [&] { return order.size() >= 3; });
  BOOST_TEST(order == "012");
}

BOOST_AUTO_TEST_CASE(an_accepted_stream_may_write_or_close_before_it_is_watched) {
  Ends ends = tcp_pair();
  Reader other(loop);
  other.stream.open_accepted(loop, ends.ours.take(), false);
  std::string much = pattern(30000000);
  other.stream.send(as_bytes(much));
  loop.end_turn();
  BOOST_TEST(other.stream.is_blocked());
  std::string all;
  run_until({&loop}, [&] { return (all += get(ends.theirs)).size() == much.size(); });
  BOOST_TEST((all == much));
  Ends more = tcp_pair();
  Reader third(loop);
  third.stream.open_accepted(loop, more.ours.take(), false);
  third.stream.close();
  BOOST_TEST(is_at_end(more.theirs));
}

BOOST_AUTO_TEST_CASE(a_blocked_stream_still_reads) {
  fill();
  put(peer, "question");
  turn(loop);
  BOOST_CHECK(reader.drain() == ReadStatus::Empty);
  BOOST_TEST(reader.received == "question");
  BOOST_TEST(stream.is_blocked());
}

// --- failures ---

BOOST_DATA_TEST_CASE(a_failure_is_told_once, data::make({false, true}), was_blocked) {
  if (was_blocked) fill();
  peer.reset();
  for (int i = 0; i < 3; ++i) {
    stream.send(as_bytes("lost"));
    loop.end_turn();
  }
  turn(loop);
  BOOST_TEST(reader.failures == 1);
  BOOST_TEST(stream.is_broken());
  BOOST_TEST(!stream.has_unsent());
  stream.send_copy(as_bytes("lost"));
  BOOST_TEST(!stream.has_unsent());
  stream.flush();
  BOOST_TEST(reader.failures == 1);
}

BOOST_AUTO_TEST_CASE(whoever_is_told_of_a_failure_may_close) {
  reader.when_failed = [this] { stream.close(); };
  peer.reset();
  stream.send(as_bytes("lost"));
  loop.end_turn();
  BOOST_TEST(reader.failures == 1);
  BOOST_TEST(!stream.is_open());
  turn(loop);
  BOOST_TEST(reader.events == 0);
}

BOOST_AUTO_TEST_CASE(a_failure_under_a_blocked_stream_may_close_it) {
  fill();
  reader.when_failed = [this] { stream.close(); };
  peer.reset();
  turn(loop);
  BOOST_TEST(reader.failures == 1);
  BOOST_TEST(!stream.is_open());
}

BOOST_AUTO_TEST_CASE(a_failure_may_write_to_another_stream) {
  Connection other;
  reader.when_failed = [&] { other.stream.send(as_bytes("the other one is gone")); };
  peer.reset();
  stream.send(as_bytes("lost"));
  loop.end_turn();
  other.loop.end_turn();
  BOOST_TEST(get(other.peer) == "the other one is gone");
}

// --- closing ---

BOOST_AUTO_TEST_CASE(closing_drops_what_was_not_sent) {
  stream.send(as_bytes("never sent"));
  stream.close();
  BOOST_TEST(!stream.is_open());
  BOOST_TEST(!stream.has_unsent());
  loop.end_turn();
  BOOST_TEST(is_at_end(peer));
  stream.close();
  stream.send(as_bytes("nowhere"));
  stream.flush();
  loop.end_turn();
  BOOST_CHECK(read().status == ReadStatus::Empty);
  BOOST_TEST(reader.failures == 0);
}

BOOST_AUTO_TEST_CASE(an_event_may_close_its_stream) {
  reader.when_event = [this] { stream.close(); };
  put(peer, "x");
  turn(loop);
  turn(loop);
  BOOST_TEST(reader.events == 1);
  BOOST_TEST(!stream.is_open());
}

BOOST_AUTO_TEST_CASE(a_closed_stream_can_be_opened_again) {
  fill();
  stream.close();
  Ends ends = unix_pair();
  stream.open(loop, ends.ours.take(), true);
  BOOST_TEST(!stream.has_unsent());
  stream.send(as_bytes("fresh"));
  loop.end_turn();
  BOOST_TEST(get(ends.theirs) == "fresh");
}

BOOST_AUTO_TEST_CASE(a_broken_stream_can_be_opened_again) {
  peer.reset();
  stream.send(as_bytes("lost"));
  loop.end_turn();
  BOOST_TEST(stream.is_broken());
  stream.close();
  Ends ends = unix_pair();
  stream.open(loop, ends.ours.take(), true);
  BOOST_TEST(!stream.is_broken());
  stream.send(as_bytes("fresh"));
  loop.end_turn();
  BOOST_TEST(get(ends.theirs) == "fresh");
}

// Without reading what the peer has sent, the kernel would answer it with a reset, and our last words would be lost.
BOOST_FIXTURE_TEST_CASE(a_polite_end_delivers_the_last_words, TcpConnection) {
  put(peer, pattern(1000));
  turn(loop);
  stream.send(as_bytes("FATAL: go away"));
  stream.close_politely();
  BOOST_TEST(!stream.is_open());
  usleep(1000);
  BOOST_TEST(get(peer) == "FATAL: go away");
  BOOST_TEST(is_at_end(peer));
}

BOOST_AUTO_TEST_CASE(a_polite_end_of_a_broken_stream_is_a_plain_one) {
  peer.reset();
  stream.send(as_bytes("lost"));
  stream.close_politely();
  BOOST_TEST(reader.failures == 1);
  BOOST_TEST(!stream.is_open());
  stream.close_politely();
}

BOOST_AUTO_TEST_CASE(a_released_descriptor_stays_open) {
  stream.send(as_bytes("sent first"));
  Fd fd(stream.release());
  BOOST_TEST(!stream.is_open());
  BOOST_TEST(get(peer) == "sent first");
  put(peer, "x");
  turn(loop);
  BOOST_TEST(reader.events == 0);
  BOOST_TEST(get(fd) == "x");
  BOOST_TEST(stream.release() == -1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
