#include "plugin/feed.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace lokadb {

namespace {

constexpr std::uint32_t kRetryPause = 1000;  // milliseconds

// Each is gone when this returns: what it holds may be what somebody waits for the end of.
void tell(std::vector<std::function<void()>> waiters) {
  for (auto& then : waiters) then();
}

// The one value that the query gives.
std::string value_of(const WatchConnection::Answer& answer) {
  if (answer == nullptr || PQntuples(answer.get()) != 1 || PQnfields(answer.get()) != 1)
    throw ConnectionLost("not one row with one column");
  return {PQgetvalue(answer.get(), 0, 0), static_cast<std::size_t>(PQgetlength(answer.get(), 0, 0))};
}

}  // namespace

Feed::Feed(std::string name, FeedSettings settings, Told told)
    : name_(std::move(name)), settings_(std::move(settings)), told_(std::move(told)) {
  end_.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] {
    begin_watch_thread("feed");
    run();
  });
}

Feed::~Feed() {
  end_.is_asked = true;
  refresh([] {});
  thread_.join();
  ::close(end_.wake_fd);
}

void Feed::refresh(std::function<void()> then) {
  {
    std::lock_guard guard(mutex_);
    waiters_.push_back(std::move(then));
  }
  std::uint64_t one = 1;
  [[maybe_unused]] auto n = write(end_.wake_fd, &one, sizeof one);
}

std::vector<std::function<void()>> Feed::take_waiters() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] auto n = read(end_.wake_fd, &ignored, sizeof ignored);
  std::lock_guard guard(mutex_);
  return std::exchange(waiters_, {});
}

void Feed::run() {
  while (!end_.is_asked) {
    try {
      WatchConnection connection({settings_.connection.begin(), settings_.connection.end()}, false,
                                 settings_.heartbeat_ms, end_);
      follow(connection);
    } catch (const NotThere& nothing) {
      if (!end_.is_asked) tell_nothing(nothing.what());
    } catch (const ConnectionLost& lost) {
      if (!end_.is_asked) tell_lost(lost.what());
    }
    tell(take_waiters());
    if (!end_.is_asked) pause(kRetryPause);
  }
  tell(take_waiters());
}

void Feed::follow(WatchConnection& connection) {
  // LISTEN before the first look: nothing that changes in between is missed.
  if (!settings_.channel.empty()) connection.ask("LISTEN " + connection.quoted(settings_.channel));
  while (!end_.is_asked) {
    auto waiters = take_waiters();  // before the question: who comes later is not served by this answer
    std::string value;
    try {
      value = value_of(connection.ask(settings_.query));
    } catch (...) {
      std::lock_guard guard(mutex_);
      waiters_.insert(waiters_.end(), waiters.begin(), waiters.end());
      throw;
    }
    if (!is_known_ || value != last_value_) {
      const bool is_first = !is_known_ || last_value_.empty();
      is_known_ = was_told_ = true;
      last_value_ = std::move(value);
      last_fault_.clear();
      told_(last_value_, true);
      // Only now: who reads this finds the plugin informed.
      if (is_first) log_line(LogLevel::Log, "%s: up to date", name_.c_str());
    }
    tell(std::move(waiters));
    connection.wait_for_notification(settings_.heartbeat_ms);
  }
}

// Asked again and again all the same: it may be made at any time.
void Feed::tell_nothing(const std::string& why) {
  if (why != last_fault_) log_line(LogLevel::Warning, "%s: nothing there: %s", name_.c_str(), why.c_str());
  last_fault_ = why;
  if (is_known_ && last_value_.empty()) return;
  is_known_ = was_told_ = true;
  last_value_.clear();
  told_({}, true);
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
  pollfd fd{end_.wake_fd, POLLIN, 0};
  poll(&fd, 1, static_cast<int>(milliseconds));
}

}  // namespace lokadb
