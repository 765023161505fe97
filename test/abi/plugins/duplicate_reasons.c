/* Has two reasons with the same id. */
#include "tiny.h"

static const lokadb_reason reasons[] = {{"once", "The first."}, {"once", "The second."}};
static const lokadb_plugin plugin = {TINY_HEAD("duplicate_reasons"), .reasons = reasons, .reason_count = 2};
TINY_ENTRY(plugin)
