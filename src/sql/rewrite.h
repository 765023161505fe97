// Small edits of a statement's text, each proved afterwards: the new text is parsed again and its facts must be the
// old ones but for what the edit is about. What is not certain is not rewritten.
//
// Positions in the facts must be those of the very text that is given (not of another text of its template). Needs
// standard_conforming_strings, or a text without a backslash in a plain string.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/position_map.h"
#include "sql/statement.h"

namespace lokadb::sql {

struct Rewritten {
  std::string text;
  PositionMap positions;
};

// `column = value`.
struct TenantCondition {
  std::string column;            // plain; quoted where it is written
  std::string value;             // as SQL: "$3", "$3::bigint", or what quoted_literal() gives
  bool has_c_collation = false;  // COLLATE "C", without which no partition is pruned by a text
};

// `text` has one statement, that of the facts. Nothing: not rewritten.

// `FROM documents d` -> `FROM "public"."documents__local" d`; without an alias `AS "documents"` is added. For relations
// that are read, inserted into, updated or deleted from; and the target of COPY FROM, which has no alias.
std::optional<Rewritten> rename_relation(std::string_view text, const Statement& facts, std::uint16_t relation,
                                         std::string_view schema, std::string_view name);

// `FROM documents d` -> `FROM (SELECT * FROM documents WHERE "documents"."tenant" = $3) AS "d"`, for each of them. Not
// where that is no longer the same: system columns, whole rows, GROUP BY columns (of which one may be a key).
std::optional<Rewritten> wrap_relations(std::string_view text, const Statement& facts,
                                        std::vector<std::uint16_t> relations, const TenantCondition& condition);

// UPDATE and DELETE: `WHERE x OR y` -> `WHERE (x OR y) AND "d"."tenant" = $3`.
std::optional<Rewritten> restrict_target(std::string_view text, const Statement& facts,
                                         const TenantCondition& condition);

std::string quoted_name(std::string_view name);
std::string quoted_literal(std::string_view value);  // for standard_conforming_strings on and off

}  // namespace lokadb::sql
