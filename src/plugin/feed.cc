#include "plugin/feed.h"

#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace lokadb {

namespace {

constexpr std::uint32_t kRetryPause = 1000;  // milliseconds
constexpr std::int64_t kLongestWait = 200;   // milliseconds until the end of the feed is noticed

struct Finish {
  void operator()(PGconn* c) const { PQfinish(c); }
};
struct Clear {
  void operator()(PGresult* r) const { PQclear(r); }
};
struct FreeNotify {
  void operator()(PGnotify* n) const { PQfreemem(n); }
};
using ResultPtr = std::unique_ptr<PGresult, Clear>;

struct Lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string first_line(const char* text) {
  std::string_view all = text;
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace

// Waits in poll() only, so that the end of the feed is not kept waiting.
class Feed::Connection {
 public:
  Connection(const FeedSettings& settings, int wake_fd, const std::atomic<bool>& ends)
      : wake_fd_(wake_fd), ends_(ends), patience_(settings.heartbeat_ms) {
    std::vector<const char*> names, values;
    for (const auto& [name, value] : settings.connection) {
      names.push_back(name.c_str());
      values.push_back(value.c_str());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    connection_.reset(PQconnectStartParams(names.data(), values.data(), 0));
    if (connection_ == nullptr) throw Lost("out of memory");
    connect();
  }

  std::string ask(const std::string& sql) {
    if (PQsendQuery(connection_.get(), sql.c_str()) != 1) fail();
    std::int64_t limit = deadline();
    std::string value;
    while (true) {
      while (PQisBusy(connection_.get()) == 1) {
        if (!wait(POLLIN, limit)) throw Lost("no answer in time");
        if (PQconsumeInput(connection_.get()) != 1) fail();
      }
      ResultPtr result(PQgetResult(connection_.get()));
      if (result == nullptr) return value;
      ExecStatusType status = PQresultStatus(result.get());
      if (status == PGRES_TUPLES_OK && PQntuples(result.get()) == 1 && PQnfields(result.get()) == 1)
        value.assign(PQgetvalue(result.get(), 0, 0), static_cast<std::size_t>(PQgetlength(result.get(), 0, 0)));
      else if (status != PGRES_COMMAND_OK)
        throw Lost(status == PGRES_TUPLES_OK ? "not one row with one column"
                                             : first_line(PQresultErrorMessage(result.get())));
    }
  }

  // Until there is a notification, the time is over, or somebody wakes the feed.
  void wait_for_notification(std::uint32_t milliseconds) {
    std::int64_t limit = now_us() + milliseconds * std::int64_t{1000};
    while (!take_notifications()) {
      if (!wait(POLLIN, limit, true)) return;
      if (PQconsumeInput(connection_.get()) != 1) fail();
    }
  }

  std::string quoted(const std::string& name) {
    std::unique_ptr<char, void (*)(void*)> text(PQescapeIdentifier(connection_.get(), name.data(), name.size()),
                                                PQfreemem);
    if (text == nullptr) fail();
    return text.get();
  }

 private:
  std::int64_t deadline() const { return now_us() + patience_ * std::int64_t{1000}; }

  [[noreturn]] void fail() { throw Lost(first_line(PQerrorMessage(connection_.get()))); }

  void connect() {
    std::int64_t limit = deadline();
    PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
    while (wanted != PGRES_POLLING_OK) {
      if (wanted == PGRES_POLLING_FAILED) fail();
      if (!wait(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, limit)) throw Lost("no connection in time");
      wanted = PQconnectPoll(connection_.get());
    }
  }

  bool take_notifications() {
    bool any = false;
    while (std::unique_ptr<PGnotify, FreeNotify> n{PQnotifies(connection_.get())}) any = true;
    return any;
  }

  // False: the time is over, or (may_be_woken) the feed was woken. Throws when the feed ends.
  bool wait(short events, std::int64_t limit, bool may_be_woken = false) {
    while (true) {
      if (ends_) throw Lost("the proxy ends");
      std::int64_t left = limit - now_us();
      if (left <= 0) return false;
      pollfd fds[] = {{PQsocket(connection_.get()), events, 0}, {wake_fd_, POLLIN, 0}};
      // One that was woken is not woken again before it looks who wants something: then it waits for the server alone.
      nfds_t count = may_be_woken ? 2 : 1;
      if (poll(fds, count, static_cast<int>(std::min<std::int64_t>(left / 1000 + 1, kLongestWait))) <= 0) continue;
      if (fds[0].revents != 0) return true;
      if (may_be_woken && fds[1].revents != 0) return false;
    }
  }

  const int wake_fd_;
  const std::atomic<bool>& ends_;
  const std::uint32_t patience_;
  std::unique_ptr<PGconn, Finish> connection_;
};

Feed::Feed(std::string name, FeedSettings settings, Told told)
    : name_(std::move(name)), settings_(std::move(settings)), told_(std::move(told)) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "feed");
    sigset_t all;  // signals are the main thread's
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    run();
  });
}

Feed::~Feed() {
  ends_ = true;
  refresh([] {});
  thread_.join();
  ::close(wake_fd_);
}

void Feed::refresh(std::function<void()> then) {
  {
    std::lock_guard guard(mutex_);
    waiters_.push_back(std::move(then));
  }
  std::uint64_t one = 1;
  [[maybe_unused]] auto n = write(wake_fd_, &one, sizeof one);
}

std::vector<std::function<void()>> Feed::take_waiters() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] auto n = read(wake_fd_, &ignored, sizeof ignored);
  std::lock_guard guard(mutex_);
  return std::exchange(waiters_, {});
}

void Feed::run() {
  while (!ends_) {
    try {
      Connection connection(settings_, wake_fd_, ends_);
      follow(connection);
    } catch (const Lost& lost) {
      if (!ends_) tell_lost(lost.what());
    }
    for (auto& then : take_waiters()) then();
    if (!ends_) pause(kRetryPause);
  }
  for (auto& then : take_waiters()) then();
}

void Feed::follow(Connection& connection) {
  // LISTEN before the first look: nothing that changes in between is missed.
  if (!settings_.channel.empty()) connection.ask("LISTEN " + connection.quoted(settings_.channel));
  while (!ends_) {
    auto waiters = take_waiters();  // before the question: who comes later is not served by this answer
    std::string value;
    try {
      value = connection.ask(settings_.query);
    } catch (...) {
      std::lock_guard guard(mutex_);
      waiters_.insert(waiters_.end(), waiters.begin(), waiters.end());
      throw;
    }
    if (!is_known_) log_line(LogLevel::Log, "%s: up to date", name_.c_str());
    if (!is_known_ || value != last_value_) {
      is_known_ = was_told_ = true;
      last_value_ = std::move(value);
      last_fault_.clear();
      told_(last_value_, true);
    }
    for (auto& then : waiters) then();
    connection.wait_for_notification(settings_.heartbeat_ms);
  }
}

void Feed::tell_lost(const std::string& why) {
  if (why != last_fault_) log_line(LogLevel::Warning, "%s: lost: %s", name_.c_str(), why.c_str());
  last_fault_ = why;
  if (was_told_ && !is_known_) return;
  was_told_ = true;
  is_known_ = false;
  last_value_.clear();
  told_({}, false);
}

void Feed::pause(std::uint32_t milliseconds) {
  pollfd fd{wake_fd_, POLLIN, 0};
  poll(&fd, 1, static_cast<int>(milliseconds));
}

}  // namespace lokadb
