// Connections of our own that plugins want to a database (lokadb_feed in lokadb_plugin.h): one thread each, which runs
// the plugin's query at the start, after each notification and with each heartbeat, and tells the plugin what is new.
// libpq does the talking: nothing here is on the path of a client's statement.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "watch/connection.h"

namespace lokadb {

struct FeedSettings {
  std::map<std::string, std::string> connection;  // libpq's keywords
  std::string channel, query;
  std::uint32_t heartbeat_ms = 5000;
  bool operator==(const FeedSettings&) const = default;
};

class Feed {
 public:
  // What the query says now (is_fresh; empty: what it asks is not in the database), or that the connection is lost and
  // nothing is known. The feed's thread; only when something is another than before.
  using Told = std::function<void(std::string_view value, bool is_fresh)>;

  // name: for the log.
  Feed(std::string name, FeedSettings settings, Told told);
  // Waits for the thread, which is told to end at once.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  const FeedSettings& settings() const { return settings_; }
  // Asks at once, and then calls `then` (on the feed's thread); also if the connection is lost or cannot be made. Any
  // thread.
  void refresh(std::function<void()> then);

 private:
  void run();
  void follow(WatchConnection& connection);
  void tell_lost(const std::string& why);
  void tell_nothing(const std::string& why);
  void pause(std::uint32_t milliseconds);
  std::vector<std::function<void()>> take_waiters();

  const std::string name_;
  const FeedSettings settings_;
  const Told told_;
  WatchEnd end_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiters_;  // guarded by mutex_
  bool is_known_ = false;                       // told_ was last called with is_fresh
  bool was_told_ = false;
  std::string last_value_, last_fault_;
  std::thread thread_;
};

}  // namespace lokadb
