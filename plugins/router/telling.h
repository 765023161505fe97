// What the router tells people: counts for each organization, and log lines that are not more than one in a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/log_rate.h"

namespace lokadb::router {

// Finds pairs of strings by pairs of views.
struct PairLess {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    int order = std::string_view(a.first).compare(b.first);
    return order != 0 ? order < 0 : std::string_view(a.second) < b.second;
  }
};

// Of one organization since the start.
struct Tally {
  std::atomic<std::uint64_t> direct{0}, cloud{0}, refused{0};
  std::atomic<std::uint64_t> faults{0};  // its database could not be used

  void set_fault(std::string_view text);
  std::string fault() const;  // the last one
  // Seconds since then; there has been one.
  std::int64_t fault_age() const;

 private:
  mutable std::mutex mutex_;
  std::string fault_;
  std::int64_t fault_time_ = 0;
};

// By database and organization. Only for organizations of the catalog, so there are not more than those. Any thread.
class Tallies {
 public:
  Tally& of(std::string_view database, std::string_view organization);

 private:
  std::shared_mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Tally>, PairLess> tallies_;
};

// Any thread.
class LogLine {
 public:
  // Logs as a warning, at most one line a second; the next one says how many were left out.
  void write(std::string_view text);

 private:
  LogRate rate_{1'000'000};
};

}  // namespace lokadb::router
