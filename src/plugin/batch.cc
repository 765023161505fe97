#include "plugin/batch.h"

#include <utility>

namespace lokadb {

Batch::Batch(BatchContext context, std::vector<BatchStatement> statements)
    : context_(std::move(context)), statements_(std::move(statements)) {}

Batch::~Batch() = default;

void Batch::start_anew() {
  if (!splits_.empty()) statements_ = std::move(unsplit_);
  unsplit_.clear();
  splits_.clear();
  targets_.clear();
  steps_.clear();
  replacements_.clear();
  facts_.clear();
  rounds_ = 0;
  free_rounds_ = 0;
  // What plugins allocated stays: they may have kept pointers to it for the batch.
}

void Batch::forget_facts_from(std::size_t count) {
  while (facts_.size() > count) facts_.pop_back();
}

void Batch::drop_steps_from(std::size_t first, std::uint32_t of_plugin) {
  for (std::size_t i = first; i < steps_.size(); ++i)
    if (steps_[i].plugin == of_plugin) steps_[i].is_done = steps_[i].is_dropped = true;
  std::erase_if(replacements_, [&](const BatchReplacement& r) { return r.plugin == of_plugin; });
}

}  // namespace lokadb
