/* Asks without end: each round has another step. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self;
  lokadb_step step = {.struct_size = sizeof step, .sql = text("select 1")};
  verdict->kind = LOKADB_ASK;
  host->add_step(batch, &step);
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("endless"), .decide = decide};
TINY_ENTRY(plugin)
