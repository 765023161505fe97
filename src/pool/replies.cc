#include "pool/replies.h"

namespace lokadb {

void ReplyQueue::grow() {
  std::vector<Expected> bigger(ring_.empty() ? 16 : ring_.size() * 2);
  for (std::size_t i = 0; i < count_; ++i) bigger[i] = std::move(at(i));
  ring_ = std::move(bigger);
  head_ = 0;
}

void ReplyQueue::remove(std::size_t i) {
  for (; i + 1 < count_; ++i) at(i) = std::move(at(i + 1));
  at(i).undo.reset();
  --count_;
}

void ReplyQueue::clear() {
  while (!empty()) pop();
}

}  // namespace lokadb
