// What several subcommands ask about an organization.
#pragma once

#include <string>

#include "cli/connection.h"

namespace lokadb::cli {

// As it is kept everywhere. Throws Failure for what is not an organization of this database.
std::string canonical_org(Connection& db, const std::string& org);

// Throws Failure with kUsage for a name that is none of a moved organization's profiles.
void check_profile(const std::string& profile);

}  // namespace lokadb::cli
