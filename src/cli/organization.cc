#include "cli/organization.h"

#include "cli/installed.h"

namespace lokadb::cli {

std::string canonical_org(Connection& db, const std::string& org) {
  check_installed(db);
  try {
    return db.value("SELECT lokadb.canonical($1)", {org});
  } catch (const Failure& failure) {
    if (failure.state != "22P02") throw;
    throw Failure{"'" + org + "' is not an organization: tenants are of type " +
                      db.value("SELECT lokadb.tenant_type()") + ", written as PostgreSQL writes them",
                  kRefused, "22P02"};
  }
}

void check_profile(const std::string& profile) {
  if (profile != "fdw" && profile != "fdw+direct" && profile != "direct")
    throw Failure{"there is no profile " + profile + ": fdw, fdw+direct or direct", kUsage};
}

}  // namespace lokadb::cli
