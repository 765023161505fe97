/* Gives a verdict of a kind that does not exist. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = 77;
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("unknown_kind"), .decide = decide};
TINY_ENTRY(plugin)
