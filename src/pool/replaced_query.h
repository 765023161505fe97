// A Query that is sent in other words than the client's, and how positions in errors about it are put right.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/position_map.h"
#include "net/loop.h"
#include "plugin/lokadb_plugin.h"

namespace lokadb {

class ReplacedQuery final : public Buriable {
 public:
  // edits: from the old text to the new one. is_utf8: positions count characters of several bytes.
  ReplacedQuery(std::string old_text, std::string_view new_text, const std::vector<lokadb_edit>& edits, bool is_utf8);
  Bytes message() const { return message_; }
  // An ErrorResponse, with the position that it has in the client's own text.
  std::vector<std::byte> with_own_position(Bytes error) const;

 private:
  std::string own_position(std::size_t position) const;

  std::string old_text_;
  std::vector<std::byte> message_;
  PositionMap positions_;
  bool is_utf8_;
};

}  // namespace lokadb
