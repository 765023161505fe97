#include "watch/connection.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/clock.h"

namespace lokadb {

namespace {

constexpr std::int64_t kLongestWait = 200;  // milliseconds until the end is noticed

struct FreeNotify {
  void operator()(PGnotify* n) const { PQfreemem(n); }
};

std::string first_line(const char* text) {
  std::string_view all = text;
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace

WatchConnection::WatchConnection(const Keywords& keywords, bool expands, std::uint32_t patience_ms, const WatchEnd& end)
    : end_(end), patience_ms_(patience_ms) {
  std::vector<const char*> names, values;
  for (const auto& [name, value] : keywords) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  connection_.reset(PQconnectStartParams(names.data(), values.data(), expands ? 1 : 0));
  if (connection_ == nullptr) throw ConnectionLost("out of memory");
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);  // else they go to standard error
  connect();
}

WatchConnection::Answer WatchConnection::ask(const std::string& sql) {
  if (PQsendQuery(connection_.get(), sql.c_str()) != 1) fail();
  std::int64_t limit = deadline();
  Answer last;
  while (true) {
    while (PQisBusy(connection_.get()) == 1) {
      if (!wait(POLLIN, limit)) throw ConnectionLost("no answer in time");
      if (PQconsumeInput(connection_.get()) != 1) fail();
    }
    Answer answer(PQgetResult(connection_.get()));
    if (answer == nullptr) return last;
    ExecStatusType status = PQresultStatus(answer.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const char* code = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
      std::string why = first_line(PQresultErrorMessage(answer.get()));
      if (code != nullptr && (code == std::string_view("3F000") || code == std::string_view("42883")))
        throw NotThere(why);
      throw ConnectionLost(why);
    }
    last = std::move(answer);
  }
}

void WatchConnection::wait_for_notification(std::uint32_t milliseconds) {
  std::int64_t limit = now_us() + milliseconds * std::int64_t{1000};
  while (!take_notifications()) {
    if (!wait(POLLIN, limit, true)) return;
    if (PQconsumeInput(connection_.get()) != 1) fail();
  }
}

std::string WatchConnection::quoted(const std::string& identifier) {
  std::unique_ptr<char, void (*)(void*)> text(
      PQescapeIdentifier(connection_.get(), identifier.data(), identifier.size()), PQfreemem);
  if (text == nullptr) fail();
  return text.get();
}

void WatchConnection::fail() { throw ConnectionLost(first_line(PQerrorMessage(connection_.get()))); }

std::int64_t WatchConnection::deadline() const { return now_us() + patience_ms_ * std::int64_t{1000}; }

void WatchConnection::connect() {
  std::int64_t limit = deadline();
  PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
  while (wanted != PGRES_POLLING_OK) {
    if (wanted == PGRES_POLLING_FAILED) fail();
    if (!wait(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, limit)) throw ConnectionLost("no connection in time");
    wanted = PQconnectPoll(connection_.get());
  }
}

bool WatchConnection::take_notifications() {
  bool any = false;
  while (std::unique_ptr<PGnotify, FreeNotify> n{PQnotifies(connection_.get())}) any = true;
  return any;
}

// False: the time is over, or (may_be_woken) the watch was woken. Throws when it ends.
bool WatchConnection::wait(short events, std::int64_t limit, bool may_be_woken) {
  while (true) {
    if (end_.is_asked) throw ConnectionLost("the proxy ends");
    std::int64_t left = limit - now_us();
    if (left <= 0) return false;
    pollfd fds[] = {{PQsocket(connection_.get()), events, 0}, {end_.wake_fd, POLLIN, 0}};
    // One that was woken is not woken again before it looks who wants something: then it waits for the server alone.
    nfds_t count = may_be_woken ? 2 : 1;
    if (poll(fds, count, static_cast<int>(std::min<std::int64_t>(left / 1000 + 1, kLongestWait))) <= 0) continue;
    if (fds[0].revents != 0) return true;
    if (may_be_woken && fds[1].revents != 0) return false;
  }
}

void begin_watch_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace lokadb
