// The feeds of all plugins from all databases of the configuration (plugin/feed.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "config/config.h"
#include "plugin/feed.h"

namespace lokadb {

class PluginChain;

class Feeds {
 public:
  explicit Feeds(PluginChain& chain) : chain_(chain) {}

  // Starts, replaces and ends feeds so that they are what plugins and configuration ask for. Main thread.
  void follow(const Config& config);
  // Lets the feeds of a database ask at once; calls `then` when all have an answer (on a thread of theirs, or at once).
  // Any thread.
  void refresh(const std::string& database, const std::function<void()>& then);

 private:
  PluginChain& chain_;
  std::map<std::pair<std::string, std::uint32_t>, std::unique_ptr<Feed>> feeds_;  // by database and plugin
  bool has_warned_ = false;                                                       // of databases that "*" stands for
};

}  // namespace lokadb
