/* Gives a reason that is not in its table. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = LOKADB_CLOUD;
  verdict->reason = 1;
  return LOKADB_OK;
}
static const lokadb_reason reasons[] = {{"the-only-one", "There is no other."}};
static const lokadb_plugin plugin = {TINY_HEAD("unknown_reason"), .reasons = reasons, .reason_count = 1,
                                     .decide = decide};
TINY_ENTRY(plugin)
