// What the rows of a prepared statement look like, as one number: a client that was told of them by one server must not
// get other rows from another without a word. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace lokadb {

using RowsMark = std::uint64_t;
inline constexpr RowsMark kUnknownRows = 0;
inline constexpr RowsMark kNoRows = 1;  // the statement has none

// Of a RowDescription without its header: names and types of the columns, which is what PostgreSQL compares; not which
// tables they are of, nor the formats, which are each Bind's own. kUnknownRows if it is broken.
RowsMark mark_of_rows(Bytes description);

// Of a ParameterDescription without its header and what mark_of_rows() says, or kNoRows. kUnknownRows if
// either is not known.
RowsMark form_of_statement(Bytes parameters, RowsMark rows);

// A statement whose rows are settled when it is prepared, as a query's are. Those of FETCH, EXECUTE or SHOW are not.
bool has_settled_rows(std::string_view sql);

}  // namespace lokadb
