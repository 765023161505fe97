// TLS between two streams.
#include "net/input.h"
#include "net/stream.h"
#include "stream_fixture.h"
#include "tls_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;

struct TlsStreams : tls_test::TlsFixture {
  EventLoop loop{4096};
  Reader client{loop}, server{loop};
  HandshakeStatus client_status = HandshakeStatus::InProgress, server_status = HandshakeStatus::InProgress;

  TlsStreams() {
    Ends ends = unix_pair();
    client.stream.open(loop, ends.ours.take(), true);
    server.stream.open(loop, ends.theirs.take(), true);
  }
  // Each end goes on with its handshake at each event, as the proxy does.
  void start() {
    client.when_event = [this] { advance(client, client_status); };
    server.when_event = [this] { advance(server, server_status); };
    client.stream.start_tls(connecting()->new_session("db.example.org"));
    server.stream.start_tls(accepting()->new_session());
    advance(client, client_status);
    advance(server, server_status);
    loop.end_turn();
  }
  static void advance(Reader& reader, HandshakeStatus& status) {
    if (status == HandshakeStatus::InProgress) status = reader.stream.handshake();
    if (status == HandshakeStatus::Done) reader.last = reader.drain();
  }
  bool are_both(HandshakeStatus status) const { return client_status == status && server_status == status; }
  void connect_both() {
    start();
    BOOST_REQUIRE(run_until({&loop}, [this] { return are_both(HandshakeStatus::Done); }));
  }
  bool received(const Reader& reader, const std::string& text) {
    return run_until({&loop}, [&] { return reader.received.size() >= text.size(); }) && reader.received == text;
  }
};

BOOST_FIXTURE_TEST_SUITE(net_stream_tls, TlsStreams)

BOOST_AUTO_TEST_CASE(both_ends_talk_after_the_handshake) {
  connect_both();
  client.stream.send(as_bytes("question"));
  loop.end_turn();
  BOOST_TEST(received(server, "question"));
  server.stream.send(as_bytes("answer"));
  loop.end_turn();
  BOOST_TEST(received(client, "answer"));
  BOOST_TEST(describe(client.stream.ssl()) == describe(server.stream.ssl()));
  BOOST_TEST(client.failures + server.failures == 0);
}

// The client is done first and speaks at once: its bytes arrive with the end of its handshake, told by one event.
BOOST_AUTO_TEST_CASE(bytes_right_behind_the_handshake_are_seen) {
  start();
  client.when_event = [this] {
    bool was_done = client_status == HandshakeStatus::Done;
    advance(client, client_status);
    if (!was_done && client_status == HandshakeStatus::Done) client.stream.send(as_bytes("at once"));
  };
  BOOST_TEST(received(server, "at once"));
}

BOOST_AUTO_TEST_CASE(what_is_sent_in_one_turn_is_one_record) {
  connect_both();
  server.when_event = nullptr;
  std::string one = "one", two = "two", three = "three";
  for (const auto* text : {&one, &two, &three}) client.stream.send(as_bytes(*text));
  loop.end_turn();
  std::string raw(1000, '\0');
  ssize_t n = recv(server.stream.fd(), raw.data(), raw.size(), MSG_PEEK);
  BOOST_TEST(n == 5 + 11 + 1 + 16);  // header, our bytes, their type, the tag of AES-GCM
  turn(loop);
  server.drain();
  BOOST_TEST(server.received == "onetwothree");
}

BOOST_AUTO_TEST_CASE(much_more_than_a_record_in_both_directions) {
  connect_both();
  std::string up = pattern(1000000), down = pattern(700001);
  client.stream.send(as_bytes(up));
  server.stream.send(as_bytes(down));
  loop.end_turn();
  BOOST_TEST(received(server, up));
  BOOST_TEST(received(client, down));
}

// A buffer smaller than a record: the rest lies in the TLS layer, of which the kernel knows nothing.
BOOST_AUTO_TEST_CASE(the_rest_of_a_record_is_read_without_an_event) {
  connect_both();
  server.when_event = nullptr;
  std::string text = pattern(10000);
  client.stream.send(as_bytes(text));
  loop.end_turn();
  turn(loop);
  int events = server.events;
  BOOST_CHECK(server.drain() == ReadStatus::Empty);
  BOOST_TEST(server.received == text);
  BOOST_TEST(server.events == events);
  BOOST_TEST(!server.stream.is_readable());
}

BOOST_AUTO_TEST_CASE(a_buffer_that_fits_exactly_leaves_nothing_behind) {
  connect_both();
  server.when_event = nullptr;
  for (std::size_t size : {4095u, 4096u, 4097u, 8192u, 16384u}) {
    std::string text = pattern(size);
    server.received.clear();
    client.stream.send(as_bytes(text));
    loop.end_turn();
    turn(loop);
    BOOST_CHECK(server.drain() == ReadStatus::Empty);
    BOOST_TEST(server.received == text);
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_does_not_read_blocks_the_stream) {
  connect_both();
  server.when_event = nullptr;
  std::string all;
  while (!client.stream.is_blocked()) {
    std::string piece = pattern(100000);
    client.stream.send(as_bytes(piece));
    loop.end_turn();
    all += piece;
    BOOST_REQUIRE(all.size() < 100000000u);
  }
  std::string more = pattern(50000);
  client.stream.send(as_bytes(more));
  loop.end_turn();
  all += more;
  BOOST_TEST(client.stream.backlog_size() > more.size());
  server.drain_on_events();
  server.drain();
  BOOST_TEST(received(server, all));
  BOOST_TEST(!client.stream.is_blocked());
}

BOOST_AUTO_TEST_CASE(messages_in_parts_are_kept_under_tls_too) {
  connect_both();
  Input input;
  std::vector<std::string> seen;
  server.when_event = [&] {
    auto consume = [&](Bytes bytes) -> std::size_t {
      if (bytes.size() < 5000) return 0;
      seen.emplace_back(as_text(bytes.first(5000)));
      return 5000;
    };
    while (input.read(server.stream, loop, consume).status == ReadStatus::Data) {
    }
  };
  std::string text = pattern(12000);
  for (std::size_t at = 0; at < text.size(); at += 1000) {
    client.stream.send(as_bytes(text).subspan(at, 1000));
    loop.end_turn();
    turn(loop);
  }
  BOOST_REQUIRE(seen.size() == 2u);
  BOOST_TEST(seen[0] + seen[1] == text.substr(0, 10000));
  BOOST_TEST(as_text(input.kept()) == text.substr(10000));
}

BOOST_AUTO_TEST_CASE(a_polite_end_is_an_end) {
  connect_both();
  client.stream.send(as_bytes("bye"));
  client.stream.close_politely();
  BOOST_TEST(run_until({&loop}, [this] { return server.last == ReadStatus::Eof; }));
  BOOST_TEST(server.received == "bye");
}

// libpq and others just close: that is no error either.
BOOST_AUTO_TEST_CASE(an_end_without_goodbye_is_an_end) {
  connect_both();
  client.stream.send(as_bytes("bye"));
  loop.flush();
  client.stream.close();
  BOOST_TEST(run_until({&loop}, [this] { return server.last == ReadStatus::Eof; }));
  BOOST_TEST(server.received == "bye");
}

BOOST_AUTO_TEST_CASE(a_certificate_that_is_not_trusted_ends_the_handshake) {
  connect.ca_file = in("other_ca.crt");
  start();
  BOOST_TEST(run_until({&loop}, [this] { return are_both(HandshakeStatus::Failed); }));
}

BOOST_AUTO_TEST_CASE(noise_is_no_handshake) {
  server.when_event = [this] { advance(server, server_status); };
  server.stream.start_tls(accepting()->new_session());
  client.stream.send(as_bytes("GET / HTTP/1.1\r\n\r\n"));
  loop.end_turn();
  BOOST_TEST(run_until({&loop}, [this] { return server_status == HandshakeStatus::Failed; }));
}

BOOST_AUTO_TEST_CASE(an_end_in_the_middle_of_the_handshake_fails_it) {
  server.when_event = [this] { advance(server, server_status); };
  server.stream.start_tls(accepting()->new_session());
  client.stream.close();
  BOOST_TEST(run_until({&loop}, [this] { return server_status == HandshakeStatus::Failed; }));
}

// Who looks at the first byte to see that a client starts TLS directly has taken it from the socket.
BOOST_AUTO_TEST_CASE(bytes_read_before_tls_are_given_to_it) {
  client.when_event = [this] { advance(client, client_status); };
  client.stream.start_tls(connecting()->new_session("db.example.org"));
  advance(client, client_status);
  loop.end_turn();
  turn(loop);
  ReadResult r = server.stream.read(loop.receive_buffer());
  BOOST_REQUIRE(r.status == ReadStatus::Data);
  BOOST_TEST(static_cast<int>(loop.receive_buffer()[0]) == 0x16);
  server.stream.unread_for_tls(Bytes(loop.receive_buffer()).first(r.size));
  server.when_event = [this] { advance(server, server_status); };
  server.stream.start_tls(accepting()->new_session());
  advance(server, server_status);
  loop.end_turn();
  BOOST_TEST(run_until({&loop}, [this] { return are_both(HandshakeStatus::Done); }));
  client.stream.send(as_bytes("hello"));
  loop.end_turn();
  BOOST_TEST(received(server, "hello"));
}

BOOST_AUTO_TEST_CASE(a_session_goes_on_in_another_loop) {
  connect_both();
  EventLoop other(4096);
  client.stream.send(as_bytes("before"));
  BOOST_TEST(received(server, "before"));
  server.stream.detach();
  client.stream.send(as_bytes(", after"));
  loop.end_turn();
  server.loop = &other;
  server.stream.attach(other);
  BOOST_TEST(run_until({&loop, &other}, [this] { return server.received == "before, after"; }));
  server.stream.send(as_bytes("yes"));
  other.end_turn();
  BOOST_TEST(received(client, "yes"));
  server.stream.close();  // the other loop ends before the fixture
}

BOOST_AUTO_TEST_CASE(a_failure_to_send_is_told_once) {
  connect_both();
  client.when_event = nullptr;
  server.stream.close();
  for (int i = 0; i < 3; ++i) {
    client.stream.send(as_bytes("lost"));
    loop.end_turn();
  }
  BOOST_TEST(client.failures == 1);
  BOOST_TEST(client.stream.is_broken());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
