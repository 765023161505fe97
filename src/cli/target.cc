#include <algorithm>

#include "cli/move_org.h"

namespace lokadb::cli {

namespace {

// Which database of which cluster: unlike its name, the same from wherever it is asked.
std::string identity(Connection& db) {
  return db.value(
      "SELECT (SELECT system_identifier FROM pg_control_system()) || '-' || (SELECT oid FROM pg_database WHERE datname "
      "= current_database())");
}

// GRANT and REVOKE of each right to change rows of the tables $1 that somebody but the owner has, columns' rights too:
// REVOKE on the table takes those as well.
constexpr char kRightsToWrite[] =
    "SELECT format('GRANT %s%s ON %s TO %s%s', x.privilege_type, r.col, r.rel, w.who, CASE WHEN x.is_grantable THEN ' "
    "WITH GRANT OPTION' ELSE '' END), format('REVOKE %s ON %s FROM %s CASCADE', x.privilege_type, r.rel, w.who)"
    " FROM (SELECT c.oid::regclass AS rel, c.relowner, c.relacl AS acl, '' AS col FROM pg_class c WHERE c.oid = ANY "
    "($1::regclass[]) UNION ALL SELECT c.oid::regclass, c.relowner, a.attacl, format('(%I)', a.attname) FROM pg_class "
    "c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid = ANY ($1::regclass[])) r, aclexplode(r.acl) x,"
    " LATERAL (SELECT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END AS who) w"
    " WHERE x.grantee <> r.relowner AND x.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')";

}  // namespace

Target::Target(Connection& cloud, Connection& target, std::string org, Login fdw, Login direct)
    : cloud_(cloud),
      target_(target),
      org_(std::move(org)),
      logins_{std::move(fdw), std::move(direct)},
      identity_(identity(target)),
      cloud_identity_(identity(cloud)),
      database_id_(identity_ + "-" + cloud.value("SELECT left(md5($1), 8)", {cloud_identity_})) {}

std::string Target::label_of(const std::string& database_id) const {
  return "lokadb: organization " + org_ + " database " + database_id;
}

std::string Target::left_label() const { return "lokadb: left by organization " + org_ + " database " + database_id_; }

std::vector<std::string> Target::leftover_comments() const {
  std::vector<std::string> comments{left_label()};
  // The label of a move that came to no end, or of a return that could not change it. Only what the journal knows of
  // counts: a copy of this cloud makes the same labels, and the rows are those of the other one.
  if (!cloud_
           .value("SELECT 1 FROM lokadb.organizations WHERE org = $1 AND server IS NULL AND $2 = ANY (begun)",
                  {org_, database_id_})
           .empty())
    comments.push_back(label_of(database_id_));
  return comments;
}

std::string Target::comment(const std::string& table) const {
  return target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
}

std::string Target::where() const {
  return "host=" + conninfo_value(target_.host()) + " port=" + target_.port() +
         " dbname=" + conninfo_value(target_.database()) +
         " user=" + conninfo_value(target_.value("SELECT session_user"));
}

std::string Target::name() const { return target_.database() + " at " + target_.host() + ":" + target_.port(); }

std::vector<std::string> Target::tables() const {
  std::vector<std::string> names;
  Rows rows = cloud_.query(
      "SELECT format('public.%I', n.rel) FROM lokadb.tables t, lokadb.name_of(t.tbl) n ORDER BY t.position");
  for (int i = 0; i < rows.size(); ++i) names.push_back(rows.get(i, 0));
  return names;
}

std::vector<std::string> Target::roles() const {
  std::vector<std::string> names;
  for (const Login& login : logins_) names.push_back(login.user);
  return names;
}

void Target::clear_leftovers() {
  for (const std::string& table : tables())
    if (!target_.value("SELECT to_regclass($1)", {table}).empty()) return drop_tables();
}

void Target::drop_tables() {
  in_transaction(target_, [&] { drop_tables_now(); });
}

void Target::drop_tables_now() {
  std::vector<std::string> all = tables(), left = leftover_comments();
  target_.run("SET LOCAL client_min_messages = warning");
  for (auto table = all.rbegin(); table != all.rend(); ++table)
    if (std::find(left.begin(), left.end(), comment(*table)) != left.end())
      target_.run("DROP TABLE " + *table + " CASCADE");
}

void Target::make_tables() {
  in_transaction(target_, [&] { make_tables_now(); });
}

void Target::make_roles() {
  for (const Login& login : logins_) {
    if (!target_.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {login.user}).empty()) continue;
    std::string password;
    if (!login.password.empty())
      password = " PASSWORD " + target_.literal(target_.encrypted_password(login.user, login.password));
    target_.run("SAVEPOINT role");
    try {
      target_.run("CREATE ROLE " + target_.quoted(login.user) + " LOGIN" + password);
    } catch (const Failure& failure) {  // another move may be quicker
      if (failure.state != "42710" && failure.state != "23505") throw;
      target_.run("ROLLBACK TO role");
    }
    target_.run("RELEASE role");
  }
}

void Target::make_tables_now() {
  Rows before = cloud_.query("SELECT * FROM lokadb.org_schemas_and_extensions()");
  Rows commands = cloud_.query("SELECT * FROM lokadb.org_tables($1, $2)", {org_, label_of(database_id_)});
  target_.run("SET LOCAL client_min_messages = warning");
  make_roles();
  for (int i = 0; i < before.size(); ++i) target_.run(before.get(i, 0));
  make_types();
  for (int i = 0; i < commands.size(); ++i) target_.run(commands.get(i, 0));
}

// Types stay when tables go: those that are there from a move before are the same, or check() had said so.
void Target::make_types() {
  Rows types = cloud_.query("SELECT name, definition FROM lokadb.org_types()");
  for (int i = 0; i < types.size(); ++i)
    if (target_.value("SELECT to_regtype($1)", {types.get(i, 0)}).empty()) target_.run(types.get(i, 1));
}

void Target::make_constraints() {
  Rows commands = cloud_.query("SELECT * FROM lokadb.org_constraints($1::text[])", {cloud_.text_array(roles())});
  for (int i = 0; i < commands.size(); ++i) target_.run(commands.get(i, 0));
}

void Target::stop_writers() {
  std::vector<std::string> all = tables();
  std::string list;
  for (const std::string& table : all) list += (list.empty() ? "" : ", ") + table;
  // The journal has them before they are taken away, beside those that a return took which was cut off.
  Rows rights = target_.query(kRightsToWrite, {target_.text_array(all)});
  for (int i = 0; i < rights.size(); ++i)
    cloud_.query(
        "UPDATE lokadb.organizations SET taken = array_append(taken, $2) WHERE org = $1 AND NOT $2 = ANY "
        "(coalesce(taken, '{}'))",
        {org_, rights.get(i, 0)});
  for (int i = 0; i < rights.size(); ++i) target_.run(rights.get(i, 1));
  target_.run("BEGIN; SET LOCAL lock_timeout = '60s'; LOCK TABLE " + list + " IN SHARE ROW EXCLUSIVE MODE; COMMIT");
}

void Target::allow_writers() {
  Rows rights = cloud_.query("SELECT unnest(taken) FROM lokadb.organizations WHERE org = $1", {org_});
  for (int i = 0; i < rights.size(); ++i) target_.run(rights.get(i, 0));
  cloud_.query("UPDATE lokadb.organizations SET taken = NULL, step = NULL WHERE org = $1", {org_});
}

void Target::remove_label() {
  for (const std::string& table : tables())
    target_.run("COMMENT ON TABLE " + table + " IS " + target_.literal(left_label()));
}

}  // namespace lokadb::cli
