// What the command line wants to know of the proxy's configuration file.
#pragma once

#include <string>

namespace lokadb::cli {

// Whether the file has the direct role of the organization: section [customers_app] with user and password, or with a
// line for the organization. Throws Failure if it cannot be read.
bool has_direct_role(const std::string& path, const std::string& org);

}  // namespace lokadb::cli
