/* Asks without end: each round has another fact and no step. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self;
  lokadb_fact fact = {.struct_size = sizeof fact, .kind = LOKADB_FACT_NAMED, .value = text("7")};
  verdict->kind = LOKADB_ASK;
  return host->publish(batch, &fact);
}
static const lokadb_plugin plugin = {TINY_HEAD("endless_facts"), .decide = decide};
TINY_ENTRY(plugin)
