#include "net/input.h"

#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;

// Takes apart what comes at ';' and says how much of it was whole.
struct Lines {
  std::vector<std::string> seen, offered;
  std::size_t operator()(Bytes bytes) {
    std::string_view text = as_text(bytes);
    offered.emplace_back(text);
    std::size_t used = 0;
    for (auto end = text.find(';'); end != text.npos; end = text.find(';', used)) {
      seen.emplace_back(text.substr(used, end - used));
      used = end + 1;
    }
    return used;
  }
};

struct InputFixture {
  EventLoop loop{16};
  Ends ends = unix_pair();
  Reader reader{loop};
  Input input;
  Lines lines;

  InputFixture() { reader.stream.open(loop, ends.ours.take(), true); }
  ReadStatus read() {
    turn(loop);
    return input.read(reader.stream, loop, lines).status;
  }
  ReadStatus read(std::string_view text) {
    put(ends.theirs, text);
    return read();
  }
  void check_seen(const std::vector<std::string>& expected) {
    BOOST_TEST(lines.seen == expected, boost::test_tools::per_element());
    lines.seen.clear();
  }
  std::string kept() const { return std::string(as_text(input.kept())); }
};

BOOST_FIXTURE_TEST_SUITE(net_input, InputFixture)

BOOST_AUTO_TEST_CASE(whole_messages_leave_nothing_behind) {
  BOOST_CHECK(read("one;two;") == ReadStatus::Data);
  check_seen({"one", "two"});
  BOOST_TEST(input.empty());
  BOOST_TEST(input.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_part_is_kept_and_comes_again_in_front) {
  read("one;tw");
  check_seen({"one"});
  BOOST_TEST(kept() == "tw");
  BOOST_TEST(input.size() == 2u);
  read("o;thr");
  check_seen({"two"});
  BOOST_TEST(lines.offered.back() == "two;thr");
  BOOST_TEST(kept() == "thr");
  read("ee;");
  check_seen({"three"});
  BOOST_TEST(input.empty());
}

BOOST_AUTO_TEST_CASE(a_message_may_come_byte_by_byte) {
  std::string message = pattern(50) + ";";
  for (char c : message) read(std::string_view(&c, 1));
  check_seen({message.substr(0, 50)});
  BOOST_TEST(input.empty());
}

BOOST_AUTO_TEST_CASE(a_message_may_be_far_longer_than_the_receive_buffer) {
  std::string message = pattern(100000);
  put(ends.theirs, "x;" + message + ";y;z");
  while (read() == ReadStatus::Data) {
  }
  check_seen({"x", message, "y"});
  BOOST_TEST(kept() == "z");
}

// The buffer was filled to its end: there is more, of which no new event tells.
BOOST_AUTO_TEST_CASE(a_full_buffer_is_read_on_without_an_event) {
  put(ends.theirs, pattern(40) + ";");
  turn(loop);
  int events = reader.events;
  while (input.read(reader.stream, loop, lines).status == ReadStatus::Data) {
  }
  BOOST_TEST(reader.events == events);
  check_seen({pattern(40)});
}

BOOST_AUTO_TEST_CASE(what_is_kept_outlives_an_empty_read_and_the_end) {
  read("abc");
  BOOST_CHECK(read() == ReadStatus::Empty);
  BOOST_TEST(kept() == "abc");
  ends.theirs.reset();
  BOOST_CHECK(read() == ReadStatus::Eof);
  BOOST_TEST(kept() == "abc");
  BOOST_TEST(lines.offered.size() == 1u);  // nothing new, nobody asked
}

BOOST_AUTO_TEST_CASE(kept_bytes_are_offered_again_on_request) {
  read("abc");
  input.retry(loop, [](Bytes bytes) {
    BOOST_TEST(as_text(bytes) == "abc");
    return std::size_t{1};
  });
  BOOST_TEST(kept() == "bc");
  input.retry(loop, [](Bytes) { return std::size_t{0}; });
  BOOST_TEST(kept() == "bc");
  input.retry(loop, [](Bytes bytes) { return bytes.size(); });
  BOOST_TEST(input.empty());
  read("d;");
  check_seen({"d"});
}

BOOST_AUTO_TEST_CASE(cleared_bytes_do_not_come_again) {
  read("abc");
  input.clear();
  BOOST_TEST(input.empty());
  read("d;");
  check_seen({"d"});
}

// Messages are passed on without a copy: from the receive buffer, and from kept bytes that are let go of.
BOOST_AUTO_TEST_CASE(bytes_that_were_sent_on_stay_valid_until_the_turn_ends) {
  Ends onward = unix_pair();
  Reader other(loop);
  other.stream.open(loop, onward.ours.take(), true);
  auto pass_on = [&](Bytes bytes) {
    std::size_t whole = as_text(bytes).rfind(';') + 1;  // npos + 1 is 0
    other.stream.send(bytes.first(whole));
    return whole;
  };
  for (std::string_view text : {"one;t", "wo;thre", "e;", "four"}) {
    put(ends.theirs, text);
    turn(loop);
    input.read(reader.stream, loop, pass_on);
    input.read(reader.stream, loop, pass_on);  // no more there: must not disturb what waits to be sent
    loop.end_turn();
  }
  BOOST_TEST(get(onward.theirs) == "one;two;three;");
  BOOST_TEST(kept() == "four");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
