// Which table and column of the client's own database a column of an organization's database is: RowDescription names
// them by numbers, which drivers look up and keep (PostgreSQL manual, "Message Formats").
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"

namespace lokadb {

class TableMap {
 public:
  // "oid.number=oid.number ..." with the organization's on the left. False: it is something else.
  bool parse(std::string_view text);
  bool empty() const { return columns_.empty(); }
  // Replaces them in a RowDescription (its whole message); what is not known becomes 0.0, as of an expression. False:
  // malformed.
  bool translate(std::span<std::byte> message) const;

 private:
  struct Place {
    std::uint32_t table;
    std::uint16_t column;
  };
  std::unordered_map<std::uint64_t, Place> columns_;
};

}  // namespace lokadb
