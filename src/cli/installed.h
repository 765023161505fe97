// Whether schema lokadb is there, of this program's version, and may be used.
#pragma once

#include "cli/connection.h"

namespace lokadb::cli {

// What tells one version of the SQL in this program from another; init leaves it in the cloud.
std::string sql_version();

// Throws Failure: no schema, that of another version, or the role may not change it.
void check_installed(Connection& cloud);

}  // namespace lokadb::cli
