/* Has a reason whose id is no id. */
#include "tiny.h"

static const lokadb_reason reasons[] = {{"Not An Id", "Blanks and capitals."}};
static const lokadb_plugin plugin = {TINY_HEAD("bad_reason_id"), .reasons = reasons, .reason_count = 1};
TINY_ENTRY(plugin)
