// From SQL text to facts, by libpg_query (the parser of PostgreSQL 15). Thread safe.
#pragma once

#include <string_view>

#include "sql/statement.h"

namespace lokadb::sql {

// `text` must be in an encoding that is_ascii_safe_encoding() approves. A text that PostgreSQL would refuse has no
// statements but an error. One that is nested too deeply to be parsed safely is a single statement of class Call that
// is not understood.
Parsed parse_sql(std::string_view text, bool has_standard_strings = true);

// PostgreSQL's own idea of "the same statement": libpg_query's fingerprint, 64 bits that leave out constants,
// parameters, the lengths of lists of these, aliases, and the names of savepoints, cursors and prepared statements.
// 0: the text cannot be parsed.
std::uint64_t fingerprint_of(std::string_view text, bool has_standard_strings = true);

// One fact a line, for tests and for people.
std::string dump(const Statement& statement);
std::string dump(const Parsed& parsed);

}  // namespace lokadb::sql
