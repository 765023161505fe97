// For lines that may come in a flood: which of them are written, and how many were left out before. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace lokadb {

class LogRate {
 public:
  explicit LogRate(std::int64_t microseconds) : period_(microseconds) {}

  // Whether a line may be written now; `left_out` is then to stand at its end, and mostly empty.
  bool is_due(std::int64_t now, std::string& left_out) {
    std::int64_t due = next_.load(std::memory_order_relaxed);
    if (now < due || !next_.compare_exchange_strong(due, now + period_, std::memory_order_relaxed)) {
      unlogged_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    left_out.clear();
    if (std::uint64_t more = unlogged_.exchange(0, std::memory_order_relaxed); more > 0)
      left_out = " (and " + std::to_string(more) + " more since the last line)";
    return true;
  }

 private:
  const std::int64_t period_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint64_t> unlogged_{0};
};

}  // namespace lokadb
