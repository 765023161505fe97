/* Its table is shorter than that of any version. */
#include "tiny.h"

static const lokadb_plugin plugin = {.struct_size = offsetof(lokadb_plugin, init),
                                     .abi_major = LOKADB_ABI_MAJOR,
                                     .abi_minor = LOKADB_ABI_MINOR,
                                     .name = "short_table",
                                     .version = "1"};
TINY_ENTRY(plugin)
