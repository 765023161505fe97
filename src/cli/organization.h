// What several subcommands ask about an organization.
#pragma once

#include <string>

#include "cli/connection.h"

namespace lokadb::cli {

// As it is kept everywhere. Throws Failure for what is not an organization of this database.
std::string canonical_org(Connection& db, const std::string& org);

}  // namespace lokadb::cli
