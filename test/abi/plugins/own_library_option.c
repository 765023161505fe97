/* Declares an option that is the host's. */
#include "tiny.h"

static const lokadb_option options[] = {{"library", NULL, "Not for plugins."}};
static const lokadb_plugin plugin = {TINY_HEAD("own_library_option"), .options = options, .option_count = 1};
TINY_ENTRY(plugin)
