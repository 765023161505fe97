#include "cli/installed.h"

#include <cstdint>

#include "cli/sql_files.h"

namespace lokadb::cli {

std::string sql_version() {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const SqlFile& file : sql_files())
    for (char c : file.text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return std::to_string(hash);
}

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
  // The program and the functions it calls fit together or are not used.
  if (cloud.value("SELECT value FROM lokadb.settings WHERE name = 'sql_version'") != sql_version())
    throw Failure{"schema lokadb in database " + cloud.database() +
                  " was made by another version of lokadb: run lokadb init of this version on it"};
}

}  // namespace lokadb::cli
