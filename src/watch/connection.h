// A connection of our own to a PostgreSQL that is watched: asked now and then, and listened to. By libpq, on a thread
// that does nothing else. It waits in poll() alone, so that neither a dead network nor a slow server keeps the end of
// that thread waiting; what libpq itself does not wait for in poll() is the look-up of host names.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lokadb {

// The connection is of no use any more, and why: without secrets.
struct ConnectionLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The connection would do, but the schema or function that a statement names is not in its database.
struct NotThere : ConnectionLost {
  using ConnectionLost::ConnectionLost;
};

// Ends a watch, from any thread.
struct WatchEnd {
  std::atomic<bool> is_asked{false};
  int wake_fd = -1;  // an eventfd, owned by whoever made it
};

class WatchConnection {
 public:
  // libpq's keywords and their values; of one that is there twice the last counts.
  using Keywords = std::vector<std::pair<std::string, std::string>>;
  struct Clear {
    void operator()(PGresult* r) const { PQclear(r); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  // Connects. patience_ms: for that, and for each answer. expands: the value of dbname may be a connection string,
  // which counts for more than the keywords in front of it. Throws ConnectionLost, as all below do; also if the end is
  // asked for.
  WatchConnection(const Keywords& keywords, bool expands, std::uint32_t patience_ms, const WatchEnd& end);

  // The last answer to one or several statements without COPY.
  Answer ask(const std::string& sql);
  // Until there is a notification, the time is over, or wake_fd can be read.
  void wait_for_notification(std::uint32_t milliseconds);
  std::string quoted(const std::string& identifier);

 private:
  struct Finish {
    void operator()(PGconn* c) const { PQfinish(c); }
  };
  [[noreturn]] void fail();
  std::int64_t deadline() const;
  void connect();
  bool take_notifications();
  bool wait(short events, std::int64_t limit, bool may_be_woken = false);

  const WatchEnd& end_;
  const std::uint32_t patience_ms_;
  std::unique_ptr<PGconn, Finish> connection_;
};

// Begins a thread's work: its name, and no signals, which are the main thread's.
void begin_watch_thread(const char* name);

}  // namespace lokadb
