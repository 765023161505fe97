/* Does not like its section. */
#include "tiny.h"

static int init(const lokadb_section *section, void **self) {
  (void)section, (void)self;
  return host->fail("F0000", text("there is no fish in the section"));
}
static const lokadb_plugin plugin = {TINY_HEAD("failing_init"), .init = init};
TINY_ENTRY(plugin)
