/* Has no name. */
#include "tiny.h"

static const lokadb_plugin plugin = {TINY_HEAD(NULL)};
TINY_ENTRY(plugin)
