// A batch that goes straight to the database of one organization: where that is, the gate in the cloud, and in which
// words the cloud is asked what the statements take and give.
#pragma once

#include <vector>

#include "plugin/lokadb_plugin.h"
#include "route/decide.h"

namespace lokadb::router {

struct BatchState;
struct Router;

// verdicts: one for each piece, all direct and about the same organization. Reason::None: `out` is filled in; else why
// it cannot go there. failed: becomes true if a call of the host has failed.
route::Reason go_direct(Router& router, lokadb_batch* batch, BatchState& state,
                        const std::vector<route::Verdict>& verdicts, lokadb_verdict& out, bool& failed);

}  // namespace lokadb::router
