// What the plugin refs has found of the keys that were wanted for a batch.
#pragma once

#include <vector>

#include "plugin/lokadb_plugin.h"
#include "route/decide.h"

namespace lokadb::router {

struct BatchState;

class FoundKeys final : public route::KeySource {
 public:
  // state: must outlive the object.
  FoundKeys(lokadb_batch* batch, const BatchState& state);
  // Every key that was wanted has been answered.
  bool is_complete() const { return is_complete_; }
  Found find(const catalog::Table& table, std::string_view key) const override;

 private:
  void take(const lokadb_fact& fact);

  bool is_complete_ = true;
  const BatchState& state_;
  std::vector<Found> answers_;  // in the order of `wanted`
};

}  // namespace lokadb::router
