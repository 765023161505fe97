// By what the organization of each table of a statement is known: from its equalities alone, transitively, for whatever
// values they have (SPEC D1).
#pragma once

#include <vector>

#include "route/analysis.h"
#include "route/names.h"

namespace lokadb::route {

// Fills bound[..].sources, sources and named_by_itself of an analysis whose `bound` has its relations.
void find_sources(const Names& names, const sql::Statement& statement, Analysis& analysis);

// The number of the source among analysis.sources, which gets it if it is new.
std::uint16_t add_source(Analysis& analysis, Source source);

// Compared with this column, equal values are one value (so that equality is transitive): integers, uuid, texts.
bool is_plain_comparable(const catalog::Table& table, std::uint16_t column);

bool is_same_value(const sql::Value& a, const sql::Value& b);
// A literal, parameter or NULL: something that can have a canonical form.
bool is_plain_value(const sql::Value& value);

}  // namespace lokadb::route
