// Connected sockets and a reader for tests of streams: one end is a Stream, the other a plain descriptor or a Stream.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <utility>

#include "net/input.h"
#include "net/stream.h"

namespace lokadb::stream_test {

// A descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&&) = delete;
  operator int() const { return fd_; }
  int take() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Ends {
  Fd ours, theirs;  // both non-blocking
};

inline Ends unix_pair(int type = SOCK_STREAM) {
  int fds[2];
  BOOST_REQUIRE(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

inline Ends tcp_pair() {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  BOOST_REQUIRE(bind(listener, generic, length) == 0);
  BOOST_REQUIRE(listen(listener, 1) == 0);
  BOOST_REQUIRE(getsockname(listener, generic, &length) == 0);
  int theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_REQUIRE(connect(theirs, generic, length) == 0);
  int ours = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  BOOST_REQUIRE(ours >= 0);
  fcntl(theirs, F_SETFL, O_NONBLOCK);
  return {Fd(ours), Fd(theirs)};
}

inline void put(int fd, std::string_view text) {
  BOOST_REQUIRE(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

// What is there now, at most one recv; "": nothing or the end.
inline std::string get(int fd, std::size_t size = 1 << 20) {
  std::string text(size, '\0');
  ssize_t n = recv(fd, text.data(), size, 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

inline bool is_at_end(int fd) {
  pollfd p{fd, POLLIN, 0};
  char byte;
  return poll(&p, 1, 2000) == 1 && recv(fd, &byte, 1, 0) == 0;
}

// A text in which every place looks different from its neighbours, so that lost or doubled bytes are seen.
inline std::string pattern(std::size_t size) {
  std::string text;
  text.reserve(size + 16);
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + ",";
  text.resize(size);
  return text;
}

struct Reader final : StreamOwner {
  explicit Reader(EventLoop& its_loop) : loop(&its_loop) {}
  ~Reader() { stream.close(); }
  void on_stream_event() override {
    ++events;
    if (when_event) when_event();
  }
  void on_send_failed() override {
    ++failures;
    if (when_failed) when_failed();
  }
  void resume() override {}

  // Reads until there is nothing more and appends it to `received`; how reading ended.
  ReadStatus drain() {
    while (true) {
      ReadResult r = stream.read(loop->receive_buffer());
      if (r.status != ReadStatus::Data) return r.status;
      received += as_text(Bytes(loop->receive_buffer()).first(r.size));
    }
  }
  void drain_on_events() {
    when_event = [this] { last = drain(); };
  }

  EventLoop* loop;
  int events = 0, failures = 0;
  std::function<void()> when_event, when_failed;
  std::string received;
  ReadStatus last = ReadStatus::Empty;
  Stream stream{*this};
};

inline void turn(EventLoop& loop) {
  event_base_loop(loop.base(), EVLOOP_NONBLOCK);
  loop.end_turn();
}

// Runs the loops until it is true, two seconds at most.
template <class Condition>
bool run_until(std::initializer_list<EventLoop*> loops, Condition&& is_true) {
  for (int i = 0; i < 20000; ++i) {
    for (EventLoop* loop : loops) turn(*loop);
    if (is_true()) return true;
    if (i > 100) usleep(100);
  }
  return false;
}

}  // namespace lokadb::stream_test
