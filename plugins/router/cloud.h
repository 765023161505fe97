// What the proxy adds to statements that go to the cloud (doc/ARCHITECTURE.md, "The cloud path"): the gate and the
// tenant in front of them, in the same transaction, and where it makes them right or quick, other words: the local part
// of a table for an organization that has not moved, the tenant as one more condition for one that may have.
#pragma once

#include <vector>

#include "plugin/lokadb_plugin.h"
#include "route/decide.h"
#include "sql/statement.h"

namespace lokadb::router {

struct Piece;
struct Router;
struct SessionState;

// Commands that run outside of a transaction of ours, or that see no rows.
bool takes_nothing(sql::StatementClass kind);

// verdicts: one for each piece of the session's batch, none of which refuses. Returns LOKADB_OK or LOKADB_FAILED.
int add_cloud_work(Router& router, lokadb_batch* batch, SessionState& session,
                   const std::vector<route::Verdict>& verdicts);

// For a piece of a batch that goes direct: what the cloud is asked of it, where its root cannot describe it. Returns
// LOKADB_OK or LOKADB_FAILED.
int describe_by_local_parts(Router& router, lokadb_batch* batch, const Piece& piece);

}  // namespace lokadb::router
