// From SQL text to facts, by libpg_query (the parser of PostgreSQL 15). Thread safe.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sql/statement.h"

namespace lokadb::sql {

// `text` must be in an encoding that is_ascii_safe_encoding() approves. A text that PostgreSQL would refuse has no
// statements but an error. One that is nested too deeply to be parsed safely is a single statement of class Call that
// is not understood.
Parsed parse_sql(std::string_view text, bool has_standard_strings = true);

// Whether a text may have several statements: a ';' stands before its end. Errs on the side of yes.
bool may_be_several(std::string_view text);
// Where the statements of a text begin, the first at 0; each reaches to the next. Empty: it has none.
std::vector<std::size_t> begins_of(const Parsed& parsed);

// "The same statement" (SPEC's fingerprint): libpg_query's 64 bits over the text with all literals made the same. It
// leaves out constants, parameters, the lengths of lists of these, aliases, comments, letter case, and the names of
// savepoints, cursors and prepared statements. Texts of one template have one fingerprint. 0: it cannot be parsed.
std::uint64_t fingerprint_of(std::string_view text, bool has_standard_strings = true);

// One fact a line, for tests and for people.
std::string dump(const Statement& statement);
std::string dump(const Parsed& parsed);

}  // namespace lokadb::sql
