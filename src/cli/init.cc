// lokadb init: installs or upgrades schema lokadb.
#include <cstdio>

#include "cli/command.h"
#include "cli/connection.h"
#include "cli/installed.h"
#include "cli/sql_files.h"

namespace lokadb::cli {

namespace {

// Files of schema/ run once each, in their order; functions/ are made anew each time.
void install(Connection& db, const std::string& part) {
  for (const SqlFile& file : sql_files()) {
    if (!file.name.starts_with(part + "schema/")) continue;
    std::string name(file.name.substr(part.size()));
    if (!db.value("SELECT 1 FROM lokadb.migrations WHERE name = $1", {name}).empty()) continue;
    db.run(std::string(file.text));
    db.query("INSERT INTO lokadb.migrations (name) VALUES ($1)", {name});
  }
  for (const SqlFile& file : sql_files())
    if (file.name.starts_with(part + "functions/")) db.run(std::string(file.text));
}

void refuse_newer(Connection& db, const std::string& part) {
  Rows known = db.query("SELECT name FROM lokadb.migrations");
  for (int i = 0; i < known.size(); ++i) {
    bool is_ours = false;
    for (const SqlFile& file : sql_files()) is_ours |= file.name == part + known.get(i, 0);
    if (!is_ours) throw Failure{"schema lokadb was made by a newer lokadb (" + known.get(i, 0) + "): use that one"};
  }
}

void begin_install(Connection& db) {
  db.query("SELECT pg_advisory_xact_lock(hashtextextended('lokadb.init', 0))");
  db.run(
      "SET LOCAL client_min_messages = warning; CREATE SCHEMA IF NOT EXISTS lokadb;"
      "CREATE TABLE IF NOT EXISTS lokadb.migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT "
      "now())");
}

// What only a superuser can do and has not done yet, as SQL; empty: all is there.
std::string missing_grants(Connection& db) {
  return db.value(
      "SELECT concat_ws(' ', CASE WHEN f.oid IS NULL THEN 'CREATE EXTENSION postgres_fdw SCHEMA public;' END,"
      " CASE WHEN f.oid IS NULL OR NOT has_foreign_data_wrapper_privilege(f.oid, 'USAGE') THEN"
      " format('GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO %I;', current_user) END,"
      " CASE WHEN NOT has_parameter_privilege('session_replication_role', 'SET') THEN"
      " format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user) END)"
      " FROM (SELECT) x LEFT JOIN pg_foreign_data_wrapper f ON f.fdwname = 'postgres_fdw'"
      " WHERE NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)");
}

// In one sentence, instead of the server's word on the first thing that fails.
void check_rights(Connection& db) {
  Rows rows = db.query(
      "SELECT current_user, has_database_privilege(current_database(), 'CREATE'), n.nspowner::regrole::text,"
      " coalesce(pg_has_role(n.nspowner, 'USAGE'), true), EXISTS (SELECT FROM pg_extension WHERE extname = "
      "'postgres_fdw')"
      " FROM (SELECT) x LEFT JOIN pg_namespace n ON n.nspname = 'lokadb'");
  const std::string who = rows.get(0, 0);
  if (rows.get(0, 3) == "f")
    throw Failure{"schema lokadb belongs to " + rows.get(0, 2) + ": run this as that role or a superuser"};
  if (rows.is_null(0, 2) && rows.get(0, 1) == "f")
    throw Failure{who + " may not create a schema: run this as the owner of database " + db.database()};
  std::string grants = missing_grants(db);
  if (rows.get(0, 4) == "f" && !grants.empty())
    throw Failure{"a superuser must run this in database " + db.database() + " first: " + grants};
}

void install_cloud(Connection& db, const Flags& flags) {
  const std::string part = "cloud/";
  check_rights(db);
  begin_install(db);
  refuse_newer(db, part);
  db.run("CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA public");
  install(db, part);
  db.query(
      "INSERT INTO lokadb.settings VALUES ('sql_version', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      {sql_version()});
  std::string type = flags.get("tenant-type"), setting = flags.get("setting");
  if (!type.empty() || !setting.empty())
    db.query("SELECT lokadb.set_tenant_type(coalesce($1, lokadb.tenant_type()), $2)",
             {type.empty() ? Value() : Value(type), setting.empty() ? Value() : Value(setting)});
  if (flags.has("control-user")) {
    std::string role = flags.get("control-user");
    db.query("SELECT lokadb.set_control_user($1)", {role.empty() ? Value() : Value(role)});
  }
  db.query("SELECT lokadb.make_refs_triggers(tbl), lokadb.lend_to_local(tbl, local_part) FROM lokadb.tables");
}

constexpr FlagSpec kFlags[] = {
    {"db", "CLOUD", "the cloud database: schema lokadb, its functions, extension postgres_fdw"},
    {"control-plane", "CP", "the control plane: where the logins for organizations' databases are kept"},
    {"tenant-type", "TYPE",
     "type of tenant columns: bigint (int, too), uuid or text; else that of the first table added"},
    {"setting", "NAME", "setting that names the organization (lokadb.tenant)"},
    {"control-user", "ROLE",
     "role of the proxy's own connections, which may read the routing catalog and the direct logins; '': none"},
    kJsonFlag,
};

// Who may read the logins for organizations' databases (sealed with the key): this role and no other. Empty: none.
void set_reader(Connection& db, const std::string& role) {
  if (!role.empty() && db.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {role}).empty())
    throw Failure{"there is no role " + role + " in the control plane's server: create it first"};
  Rows commands = db.query(
      "SELECT format('REVOKE ALL ON lokadb.direct_credentials FROM %s', CASE x.grantee WHEN 0 THEN 'PUBLIC'"
      " ELSE x.grantee::regrole::text END) FROM pg_class c, aclexplode(c.relacl) x"
      " WHERE c.oid = 'lokadb.direct_credentials'::regclass AND x.grantee <> c.relowner"
      " UNION ALL SELECT format('GRANT USAGE ON SCHEMA lokadb TO %1$I; GRANT SELECT ON lokadb.direct_credentials TO"
      " %1$I', $1::text) WHERE $1 <> ''",
      {role});
  for (int i = 0; i < commands.size(); ++i) db.run(commands.get(i, 0));
}

void install_control_plane(const Flags& flags) {
  Connection db(flags.get("control-plane"), "lokadb init");
  in_transaction(db, [&] {
    begin_install(db);
    if (!db.value("SELECT to_regclass('lokadb.organizations')").empty())
      throw Failure{"database " + db.database() + " is a cloud database: the control plane needs one of its own"};
    refuse_newer(db, "control/");
    install(db, "control/");
    if (flags.has("control-user")) set_reader(db, flags.get("control-user"));
  });
  say(flags, "the control plane is up to date in database " + db.database(),
      JsonObject().text("database", db.database()).text("schema", "control plane"));
}

int run(const Flags& flags) {
  if (flags.has("control-plane")) install_control_plane(flags);
  if (flags.has("control-plane") && !flags.has("db")) return 0;
  if (!flags.has("db")) throw Failure{"-db or -control-plane is missing", kUsage};
  Connection db(flags.get("db"), "lokadb init");
  if (db.version() < 150000) throw Failure{"the cloud must be PostgreSQL 15 or newer"};
  in_transaction(db, [&] { install_cloud(db, flags); });
  std::string sentence = "schema lokadb is up to date in database " + db.database(), grants = missing_grants(db);
  if (!grants.empty())
    sentence += "\nbefore an organization can move, a superuser must run in this database: " + grants;
  say(flags, sentence,
      JsonObject().text("database", db.database()).text("schema", "cloud").text_or_null("missing_grants", grants));
  return 0;
}

}  // namespace

const Command kInit{"init", "Installs or upgrades LokaDB's schema", "", kFlags, run};

}  // namespace lokadb::cli
