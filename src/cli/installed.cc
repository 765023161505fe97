#include "cli/installed.h"

namespace lokadb::cli {

void check_installed(Connection& cloud) {
  Rows rows = cloud.query(
      "SELECT current_user, n.nspowner::regrole::text, pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n"
      " WHERE n.nspname = 'lokadb'");
  if (rows.size() == 0)
    throw Failure{"database " + cloud.database() + " has no schema lokadb: run lokadb init on it first"};
  if (rows.get(0, 2) != "t")
    throw Failure{rows.get(0, 0) + " may not change tables of LokaDB: run this as " + rows.get(0, 1) +
                  ", who owns schema lokadb, or as a superuser"};
}

}  // namespace lokadb::cli
