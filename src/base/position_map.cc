#include "base/position_map.h"

#include <algorithm>

namespace lokadb {

void PositionMap::replace(std::size_t at, std::size_t removed, std::size_t added) {
  edits_.push_back({at, removed, added});
}

std::size_t PositionMap::to_new(std::size_t position) const {
  std::size_t shift = 0;  // may wrap on the way
  for (const Edit& edit : edits_) {
    if (position < edit.at) break;
    if (position < edit.at + edit.removed) return edit.at + shift;
    shift += edit.added - edit.removed;
  }
  return position + shift;
}

std::size_t PositionMap::to_old(std::size_t position) const {
  std::size_t shift = 0;  // old to new
  for (const Edit& edit : edits_) {
    if (position < edit.at + shift) break;
    if (position < edit.at + shift + edit.added) return edit.at;
    shift += edit.added - edit.removed;
  }
  return position - shift;
}

PositionMap composed(const PositionMap& first, const PositionMap& second) {
  std::vector<PositionMap::Edit> all = first.edits();
  for (const PositionMap::Edit& e : second.edits()) {
    std::size_t at = first.to_old(e.at);
    auto same = std::find_if(all.begin(), all.end(), [at](const PositionMap::Edit& other) { return other.at == at; });
    if (same != all.end() && e.removed == 0)
      same->added += e.added;
    else
      all.push_back({at, e.removed, e.added});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  PositionMap out;
  for (const PositionMap::Edit& e : all) out.replace(e.at, e.removed, e.added);
  return out;
}

}  // namespace lokadb
