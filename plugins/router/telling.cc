#include "telling.h"

#include <chrono>
#include <mutex>

#include "router.h"

namespace lokadb::router {

namespace {
std::int64_t now_us() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}
constexpr std::int64_t kSecond = 1'000'000;
}  // namespace

void Tally::set_fault(std::string_view text) {
  faults.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard guard(mutex_);
  fault_ = text;
  fault_time_ = now_us();
}

std::string Tally::fault() const {
  std::lock_guard guard(mutex_);
  return fault_;
}

std::int64_t Tally::fault_age() const {
  std::lock_guard guard(mutex_);
  return (now_us() - fault_time_) / kSecond;
}

Tally& Tallies::of(std::string_view database, std::string_view organization) {
  {
    std::shared_lock guard(mutex_);
    if (auto it = tallies_.find(std::pair(database, organization)); it != tallies_.end()) return *it->second;
  }
  std::unique_lock guard(mutex_);
  auto& place = tallies_[{std::string(database), std::string(organization)}];
  if (place == nullptr) place = std::make_unique<Tally>();
  return *place;
}

void LogLine::write(std::string_view text) {
  std::string left_out;
  if (!rate_.is_due(now_us(), left_out)) return;
  std::string line = std::string(text) + left_out;
  host->log(1, lent(line));
}

}  // namespace lokadb::router
