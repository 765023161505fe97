/* The current header has the layout of version 1.0, for C. */
#define LAYOUT_OF "plugin/lokadb_plugin.h"
#include "layout_1_0.h"
