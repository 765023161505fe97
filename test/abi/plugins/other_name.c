/* Has another name than the file. */
#include "tiny.h"

static const lokadb_plugin plugin = {TINY_HEAD("somebody_else")};
TINY_ENTRY(plugin)
