/* Was built for another major version. */
#include "tiny.h"

static const lokadb_plugin plugin = {.struct_size = sizeof plugin,
                                     .abi_major = LOKADB_ABI_MAJOR + 1,
                                     .abi_minor = 0,
                                     .name = "other_major",
                                     .version = "1"};
TINY_ENTRY(plugin)
