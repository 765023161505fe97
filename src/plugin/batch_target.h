// A database that plugins send batches to: a copy of lokadb_target.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace lokadb {

struct BatchTarget {
  std::string name, host, database, user, password, greeting;
  std::uint32_t port = 0;
  std::uint64_t generation = 0;
  bool operator==(const BatchTarget&) const = default;

  // Of its pool. Connections are shared only where all is the same: the login, and what the greeting sets and asks. The
  // name is shown, and tells nothing of the password.
  std::string pool_name() const;
};
// With the name of its pool, made once.
struct NamedTarget : BatchTarget {
  explicit NamedTarget(BatchTarget target) : BatchTarget(std::move(target)), pool(pool_name()) {}
  const std::string pool;
};
using BatchTargetPtr = std::shared_ptr<const NamedTarget>;

// Those of one plugin that it has given a number (lokadb_target::known_as). Any thread.
class TargetTable {
 public:
  BatchTargetPtr find(std::uint64_t number) const;  // null: not known
  void keep(std::uint64_t number, BatchTargetPtr target);

 private:
  static constexpr std::size_t kMostBytes = 16u << 20;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, BatchTargetPtr> targets_;
  std::size_t bytes_ = 0;
};

}  // namespace lokadb
