/* Asks for an option that it did not declare. */
#include "tiny.h"

static int init(const lokadb_section *section, void **self) {
  (void)self;
  host->option(section, text("colour"));
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("undeclared_option"), .init = init};
TINY_ENTRY(plugin)
