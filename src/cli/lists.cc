// lokadb tables, lokadb orgs: what is there.
#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "cli/connection.h"
#include "cli/installed.h"

namespace lokadb::cli {

namespace {

void print_table(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (int c = 0; c < rows.columns(); ++c) {
    widths.push_back(rows.name(c).size());
    for (int r = 0; r < rows.size(); ++r) widths.back() = std::max(widths.back(), rows.get(r, c).size());
  }
  for (int r = -1; r < rows.size(); ++r) {
    std::string line;
    for (int c = 0; c < rows.columns(); ++c) {
      std::string cell = r < 0 ? rows.name(c) : rows.get(r, c);
      if (c + 1 < rows.columns()) cell.resize(widths[static_cast<std::size_t>(c)] + 2, ' ');
      line += cell;
    }
    std::printf("%s\n", line.c_str());
  }
}

int list(const Flags& flags, const std::string& sql) {
  Connection db(flags.get("db"), "lokadb");
  check_installed(db);
  if (flags.has("json"))
    std::printf("%s\n", db.value("SELECT coalesce(jsonb_agg(to_jsonb(x)), '[]') FROM (" + sql + ") x").c_str());
  else
    print_table(db.query(sql));
  return 0;
}

constexpr FlagSpec kListFlags[] = {kDbFlag, kJsonFlag};

int tables(const Flags& flags) {
  return list(flags,
              "SELECT t.tbl::text AS \"table\", t.key_col AS key, t.key_type AS type, t.tenant_col AS tenant,"
              " (SELECT string_agg(r.col || '=' || r.parent::text, ' ' ORDER BY r.col) FROM lokadb.relations r WHERE "
              "r.child = t.tbl) AS relations,"
              " (SELECT string_agg(k.col || '=' || k.refers_to::text, ' ' ORDER BY k.col) FROM lokadb.cloud_keys k "
              "WHERE k.tbl = t.tbl) AS cloud_keys FROM lokadb.tables t ORDER BY t.position");
}

int orgs(const Flags& flags) {
  return list(flags,
              "SELECT o.org, o.profile, o.generation, o.database_id AS database, o.connection, o.step,"
              " (SELECT string_agg(format('%s %s%s since %s', h.who, CASE WHEN h.mode = 'ExclusiveLock' THEN 'pauses' "
              "ELSE 'works' END, CASE WHEN h.granted THEN '' ELSE ' (waiting)' END, h.since::timestamptz(0)), '; ')"
              " FROM lokadb.holders(o.org) h) AS held_by FROM lokadb.organizations o ORDER BY o.org");
}

}  // namespace

const Command kTables{"tables", "Lists the tables under LokaDB", "", kListFlags, tables};
const Command kOrgs{"orgs", "Lists organizations that have moved or ever had, and who holds them", "", kListFlags,
                    orgs};

}  // namespace lokadb::cli
