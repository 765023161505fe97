// A text that was edited: where its bytes have gone. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace lokadb {

// Where bytes of the old text are in the new one, and back. Bytes from 0.
class PositionMap {
 public:
  // Old bytes [at, at+removed) became `added` new ones. In ascending order, without overlap.
  void replace(std::size_t at, std::size_t removed, std::size_t added);

  // A byte that was replaced belongs to where the replacement begins.
  std::size_t to_new(std::size_t old_position) const;
  std::size_t to_old(std::size_t new_position) const;

  struct Edit {
    std::size_t at, removed, added;
  };
  const std::vector<Edit>& edits() const { return edits_; }

 private:
  std::vector<Edit> edits_;
};

// Both, one after the other. What the second changes of what the first has added is taken for added there.
PositionMap composed(const PositionMap& first, const PositionMap& second);

}  // namespace lokadb
