// A text that is sent in other words than the client's, and how positions in errors about it are put right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/position_map.h"
#include "plugin/lokadb_plugin.h"

namespace lokadb {

// An ErrorResponse with another position, if it has one. own_position: of one in the text that was sent; both count
// characters from 1.
std::vector<std::byte> with_position(Bytes error, const std::function<std::size_t(std::size_t)>& own_position);

class ReplacedText {
 public:
  // edits: from the old text to the new one. is_utf8: positions count characters of several bytes.
  ReplacedText(std::string old_text, std::string new_text, const std::vector<lokadb_edit>& edits, bool is_utf8);
  const std::string& text() const { return new_text_; }
  // An ErrorResponse, with the position that it has in the client's own text.
  std::vector<std::byte> with_own_position(Bytes error) const;

 private:
  std::size_t own_position(std::size_t position) const;

  std::string old_text_, new_text_;
  PositionMap positions_;
  bool is_utf8_;
};

}  // namespace lokadb
