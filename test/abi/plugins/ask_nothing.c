/* Asks, but for nothing. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = LOKADB_ASK;
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("ask_nothing"), .decide = decide};
TINY_ENTRY(plugin)
