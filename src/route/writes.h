// What INSERT, UPDATE, DELETE and COPY need to go direct (SPEC D3, W2, C2), and where the organization of new rows
// comes from.
#pragma once

#include "route/analysis.h"
#include "route/names.h"

namespace lokadb::route {

// Adds the sources of the target's new rows, the work of the refs step and what the cloud path cannot do; returns why
// the write never goes direct. `target` is a relation under LokaDB and in analysis.bound.
Fault judge_write(const Names& names, const sql::Statement& statement, std::uint16_t target, Analysis& analysis);

}  // namespace lokadb::route
