/* Takes the first reload and no other, so that nothing can be taken back. */
#include "tiny.h"

static int reloads;

static int reload(void *self, const lokadb_section *section) {
  (void)self, (void)section;
  return ++reloads == 1 ? LOKADB_OK : host->fail(NULL, text("once is enough"));
}
static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = LOKADB_CLOUD;
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("stubborn_reload"), .reload = reload, .decide = decide};
TINY_ENTRY(plugin)
