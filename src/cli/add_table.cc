// lokadb add-table: puts tables under LokaDB.
#include <cstdio>

#include "cli/command.h"
#include "cli/connection.h"
#include "cli/installed.h"

namespace lokadb::cli {

namespace {

constexpr FlagSpec kFlags[] = {
    kDbFlag,
    {"table", "T",
     "the table, quoted as in SQL, with its schema unless that is public; with -all: the table of organizations"},
    {"all", "", "every table that hangs on -table (default organizations) by foreign keys, parents first"},
    {"key", "K", "its primary key (found by itself)"},
    {"tenant", "COL",
     "its tenant column (default: as in the tables before, else organization_id); added if there is none"},
    {"relation", "COL=PARENT…", "a column that refers to the key of a parent without a foreign key; may be repeated"},
    {"accept-unique", "NAME…",
     "a unique index over all organizations that may end with the first move; may be repeated"},
    kDryRunFlag,
    kJsonFlag,
};

void check_relations(const std::vector<std::string>& relations) {
  for (const std::string& r : relations) {
    auto equals = r.find('=');
    if (equals == std::string::npos || equals == 0) throw Failure{"-relation needs COLUMN=PARENT, not " + r, kUsage};
  }
}

std::string relations_json(Connection& db, const std::vector<std::string>& relations) {
  std::string json = "{}";
  for (const std::string& r : relations) {
    auto equals = r.find('=');
    json = db.value("SELECT $1::jsonb || jsonb_build_object($2::text, $3::text)",
                    {json, r.substr(0, equals), r.substr(equals + 1)});
  }
  return json;
}

Value if_given(const Flags& flags, std::string_view name) { return flags.has(name) ? Value(flags.get(name)) : Value(); }

// What was done, as JSON.
std::string add(Connection& db, const Flags& flags, const std::string& table, const std::string& relations,
                const std::string& unique) {
  return db.value("SELECT lokadb.add_table($1, $2, $3, $4::jsonb, $5::text[])",
                  {table, if_given(flags, "key"), if_given(flags, "tenant"), relations, unique});
}

void say(Connection& db, const std::string& done) {
  Rows said = db.query(
      "SELECT x->>'table', CASE WHEN (x->>'added')::bool THEN format('added, %s rows%s%s', x->>'rows',"
      " CASE WHEN (x->>'tenant_added')::bool THEN ', tenant column ' || (x->>'tenant') || ' made' END,"
      " (SELECT string_agg(format(', %s refers to %s', key, value), '') FROM jsonb_each_text(x->'relations')))"
      " ELSE 'is under LokaDB already' END FROM (SELECT $1::jsonb AS x) y",
      {done});
  std::printf("%s: %s\n", said.get(0, 0).c_str(), said.get(0, 1).c_str());
}

int run(const Flags& flags) {
  if (!flags.has("all") && !flags.has("table")) throw Failure{"-table or -all is missing", kUsage};
  if (flags.has("all") && (flags.has("key") || flags.has("relation")))
    throw Failure{"-key and -relation are for one table, not for -all", kUsage};
  check_relations(flags.all("relation"));
  Connection db(flags.get("db"), "lokadb add-table");
  check_installed(db);
  std::vector<std::string> tables;
  if (flags.has("all")) {
    Rows below = db.query("SELECT lokadb.tables_below($1)", {flags.get("table", "public.organizations")});
    for (int i = 0; i < below.size(); ++i) tables.push_back(below.get(i, 0));
    if (tables.empty()) throw Failure{"no table refers to " + flags.get("table", "public.organizations")};
  } else {
    tables.push_back(flags.get("table"));
  }
  // All or none; a dry run does everything and takes it back.
  db.run("BEGIN");
  std::vector<std::string> done;
  std::string relations = relations_json(db, flags.all("relation")), unique = db.text_array(flags.all("accept-unique"));
  for (const std::string& table : tables) done.push_back(add(db, flags, table, relations, unique));
  db.run(flags.has("dry-run") ? "ROLLBACK" : "COMMIT");
  for (const std::string& json : done) {
    if (flags.has("json"))
      std::printf("%s\n", json.c_str());
    else
      say(db, json);
  }
  if (flags.has("dry-run") && !flags.has("json")) std::printf("dry run: nothing was changed\n");
  return 0;
}

}  // namespace

const Command kAddTable{"add-table", "Puts a table under LokaDB", "", kFlags, run};

}  // namespace lokadb::cli
