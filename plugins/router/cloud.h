// What the proxy adds to statements that go to the cloud (doc/ARCHITECTURE.md, "The cloud path"): the gate and the
// tenant in front of them, in the same transaction, and where it makes them right or quick, other words: the local part
// of a table for an organization that has not moved, the tenant as one more condition for one that may have.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/lokadb_plugin.h"
#include "route/decide.h"
#include "sql/rewrite.h"

namespace lokadb::router {

struct Piece;
struct Router;
struct SessionState;

// Statements in other words, of prepared statements, by their text and what was done to them. Bounded in bytes. Any
// thread.
class Rewrites {
 public:
  using Ptr = std::shared_ptr<const std::optional<sql::Rewritten>>;
  Ptr find(const std::string& key) const;
  void keep(const std::string& key, Ptr rewritten);

 private:
  static constexpr std::size_t kLimit = 16u << 20;  // bytes
  mutable std::mutex mutex_;
  std::map<std::string, Ptr> known_;
  std::size_t bytes_ = 0;
};

// verdicts: one for each piece of the session's batch, none of which refuses. Returns LOKADB_OK or LOKADB_FAILED.
int add_cloud_work(Router& router, lokadb_batch* batch, SessionState& session,
                   const std::vector<route::Verdict>& verdicts);

}  // namespace lokadb::router
