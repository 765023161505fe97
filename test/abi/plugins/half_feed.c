/* Asks for a feed and cannot take its answers. */
#include "tiny.h"

static int feed(void *self, lokadb_string database, lokadb_feed *out) {
  (void)self, (void)database, (void)out;
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("half_feed"), .feed = feed};
TINY_ENTRY(plugin)
