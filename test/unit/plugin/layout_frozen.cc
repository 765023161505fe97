// So has the frozen header, for C++.
#define LAYOUT_OF "lokadb_plugin-1.0.h"
#include "layout_1_0.h"
