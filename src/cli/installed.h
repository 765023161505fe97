// What subcommands ask of a cloud database before they change its tables.
#pragma once

#include "cli/connection.h"

namespace lokadb::cli {

// Throws Failure unless schema lokadb is there and belongs to whoever is connected.
void check_installed(Connection& cloud);

}  // namespace lokadb::cli
