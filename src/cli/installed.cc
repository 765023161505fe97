#include "cli/installed.h"

#include "cli/sql_files.h"

namespace lokadb::cli {

void check_installed(Connection& cloud) {
  Rows rows = cloud.query(
      "SELECT current_user, n.nspowner::regrole::text, pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n"
      " WHERE n.nspname = 'lokadb'");
  if (rows.size() == 0)
    throw Failure{"database " + cloud.database() + " has no schema lokadb: run lokadb init on it first"};
  if (rows.get(0, 2) != "t")
    throw Failure{rows.get(0, 0) + " may not administer LokaDB here: run this as " + rows.get(0, 1) +
                  ", who owns schema lokadb, or as a superuser"};
  if (cloud.value("SELECT to_regclass('lokadb.organizations')").empty())
    throw Failure{"database " + cloud.database() + " is a control plane: name the cloud database"};
  for (const SqlFile& file : sql_files())
    if (file.name.starts_with("cloud/schema/") &&
        cloud.value("SELECT 1 FROM lokadb.migrations WHERE name = $1", {std::string(file.name.substr(6))}).empty())
      throw Failure{"schema lokadb of database " + cloud.database() +
                    " was made by an older lokadb: run lokadb init on it first"};
}

}  // namespace lokadb::cli
