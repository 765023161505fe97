// Are the facts of an edited text those of the old one? Each take_out_ function removes from the new facts what an edit
// added, and gives the rest its old numbers.
#pragma once

#include <string_view>
#include <vector>

#include "sql/rewrite.h"
#include "sql/statement.h"

namespace lokadb::sql {

// But for positions and the numbers of scopes.
bool are_equal_facts(const Statement& a, const Statement& b);

// The subqueries that stand where `relations` were in `old`. False: that is not what the new text has.
[[nodiscard]] bool take_out_wraps(Statement& now, const Statement& old, const std::vector<std::uint16_t>& relations,
                                  std::string_view column);

// One equality of that column of `relation`.
[[nodiscard]] bool take_out_condition(Statement& now, const Statement& old, std::uint16_t relation,
                                      std::string_view column);

// Numbers literals as in the old text; call it last.
void take_out_literals(Statement& now, std::string_view old_text, const Rewritten& rewritten);

}  // namespace lokadb::sql
