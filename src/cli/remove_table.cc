// lokadb remove-table: takes tables out of LokaDB again.
#include <cstdio>

#include "cli/command.h"
#include "cli/connection.h"
#include "cli/installed.h"

namespace lokadb::cli {

namespace {

constexpr FlagSpec kFlags[] = {
    kDbFlag,
    {"table", "T…",
     "the table, quoted as in SQL, with its schema unless that is public; may be repeated, children first"},
    {"all", "", "every table under LokaDB"},
    {"drop-tenant", "", "drop the tenant column as well where add-table had made it"},
    kDryRunFlag,
    kJsonFlag,
};

std::vector<std::string> tables_of(Connection& db, const Flags& flags) {
  if (!flags.has("all")) return flags.all("table");
  std::vector<std::string> tables;
  Rows rows = db.query("SELECT tbl::text FROM lokadb.tables ORDER BY position DESC");
  for (int i = 0; i < rows.size(); ++i) tables.push_back(rows.get(i, 0));
  return tables;
}

int run(const Flags& flags) {
  if (flags.has("all") == flags.has("table")) throw Failure{"either -table or -all is needed", kUsage};
  Connection db(flags.get("db"), "lokadb remove-table");
  check_installed(db);
  // With -all only some of the columns were made by add-table.
  const std::string drop = !flags.has("drop-tenant") ? "false"
                           : !flags.has("all")       ? "true"
                                                     : "coalesce((SELECT tenant_added FROM lokadb.tables WHERE tbl = "
                                                       "lokadb.any_table($1)), false)";
  std::vector<std::string> done;
  db.run("BEGIN");
  for (const std::string& table : tables_of(db, flags))
    done.push_back(db.value("SELECT lokadb.remove_table($1, " + drop + ")", {table}));
  db.run(flags.has("dry-run") ? "ROLLBACK" : "COMMIT");
  for (const std::string& json : done) {
    std::string said = flags.has("json")
                           ? json
                           : db.value(
                                 "SELECT format('%s: removed, %s rows%s', x->>'table', x->>'rows', CASE WHEN "
                                 "(x->>'tenant_dropped')::bool THEN ', tenant column ' || (x->>'tenant') || ' dropped' "
                                 "END) FROM (SELECT $1::jsonb AS x) y",
                                 {json});
    std::printf("%s\n", said.c_str());
  }
  if (flags.has("dry-run") && !flags.has("json")) std::printf("dry run: nothing was changed\n");
  return 0;
}

}  // namespace

const Command kRemoveTable{"remove-table", "Takes a table out of LokaDB again", "", kFlags, run};

}  // namespace lokadb::cli
