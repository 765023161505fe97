// COPY FROM for a role under row security, which PostgreSQL refuses: into a table of the transaction, and from there by
// INSERT.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "sql/rewrite.h"
#include "sql/statement.h"

namespace lokadb::router {

struct CopyFrom {
  std::string make_table;  // SQL, in front
  sql::Rewritten copy;     // the COPY, and the INSERT behind it
};

// `text` is one statement, that of the facts: COPY table FROM STDIN. `number`: of the table in its transaction.
// Nothing: not rewritten.
std::optional<CopyFrom> copy_through_table(const catalog::Table& table, std::string_view text,
                                           const sql::Statement& facts, std::uint32_t number);

}  // namespace lokadb::router
