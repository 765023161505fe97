/* Fails without saying why. */
#include "tiny.h"

static int init(const lokadb_section *section, void **self) {
  (void)section, (void)self;
  return LOKADB_FAILED;
}
static const lokadb_plugin plugin = {TINY_HEAD("silent_init"), .init = init};
TINY_ENTRY(plugin)
