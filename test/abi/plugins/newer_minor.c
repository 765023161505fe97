/* Was built for a minor version that this host does not have yet. */
#include "tiny.h"

static const lokadb_plugin plugin = {.struct_size = sizeof plugin + 64,
                                     .abi_major = LOKADB_ABI_MAJOR,
                                     .abi_minor = LOKADB_ABI_MINOR + 1,
                                     .name = "newer_minor",
                                     .version = "1"};
TINY_ENTRY(plugin)
