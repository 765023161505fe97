/* Refuses without a SQLSTATE. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = LOKADB_REFUSE;
  verdict->message = text("no");
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("no_sqlstate"), .decide = decide};
TINY_ENTRY(plugin)
