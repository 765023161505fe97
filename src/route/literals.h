// The literals of a text, decoded as far as routing needs them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "route/decide.h"
#include "sql/template_key.h"

namespace lokadb::route {

// Borrows the text. Literals are numbered as in the statement's facts.
class LiteralList {
 public:
  LiteralList() = default;
  explicit LiteralList(std::string_view text, bool has_standard_strings = true);

  // Those of another text, in the memory that there is.
  void read(std::string_view text, const sql::Lifted& lifted);
  std::span<const Literal> view() const { return literals_; }

 private:
  void add(std::string_view text, const sql::Token& token);
  std::vector<Literal> literals_;
  std::vector<std::unique_ptr<std::string>> decoded_;  // of those that are not in the text as they are
};

}  // namespace lokadb::route
