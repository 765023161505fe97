// Statements in other words: on the local part of tables, or with the tenant as one more condition.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "route/analysis.h"
#include "sql/rewrite.h"

namespace lokadb::router {

// What is to be done to a statement.
struct Rewriting {
  const route::Analysis& analysis;
  std::vector<std::uint16_t> relations;  // that get the condition; none: the local parts of the analysis are used
  std::string tenant;                    // of the condition, as SQL
};

// Nothing: it cannot be proved to say the same.
std::optional<sql::Rewritten> rewritten(const Rewriting& rewriting, const std::string& statement);
std::optional<sql::Rewritten> by_local_parts(const route::Analysis& analysis, const std::string& statement);

// Those of prepared statements, by their text and what was done to them. Bounded in bytes. Any thread.
class Rewrites {
 public:
  using Ptr = std::shared_ptr<const std::optional<sql::Rewritten>>;
  // Never null. Kept only if `is_kept`.
  Ptr get(const Rewriting& rewriting, const std::string& statement, bool is_kept);

 private:
  Ptr find(const std::string& key) const;
  void keep(const std::string& key, Ptr rewritten);

  static constexpr std::size_t kLimit = 16u << 20;  // bytes
  mutable std::mutex mutex_;
  std::map<std::string, Ptr> known_;
  std::size_t bytes_ = 0;
};

}  // namespace lokadb::router
