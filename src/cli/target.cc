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

}  // namespace

Target::Target(Connection& cloud, Connection& target, std::string org, Login fdw, Login direct)
    : cloud_(cloud),
      target_(target),
      org_(std::move(org)),
      logins_{std::move(fdw), std::move(direct)},
      database_id_(identity(target)) {}

bool Target::is_cloud() const { return identity(cloud_) == database_id_; }

std::string Target::label() const { return "lokadb: organization " + org_ + " database " + database_id_; }

std::vector<std::string> Target::leftover_comments() const {
  std::vector<std::string> comments{"lokadb: left by organization " + org_};
  // The label of a move that came to no end, or of a return that could not remove it. Another cloud can have an
  // organization of that name, and its rows there: only what this one has noted counts.
  if (!cloud_.value("SELECT 1 FROM lokadb.organizations WHERE org = $1 AND database_id = $2", {org_, database_id_})
           .empty())
    comments.insert(comments.begin(), label());
  return comments;
}

std::string Target::comment(const std::string& table) const {
  return target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
}

bool Target::is_leftover(const std::string& table) const {
  std::vector<std::string> comments = leftover_comments();
  return std::find(comments.begin(), comments.end(), comment(table)) != comments.end();
}

std::string Target::where() const {
  return "host=" + target_.host() + " port=" + target_.port() + " dbname=" + target_.database() +
         " user=" + target_.value("SELECT session_user");
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
  std::vector<std::string> all = tables();
  in_transaction(target_, [&] {
    target_.run("SET LOCAL client_min_messages = warning");
    for (auto table = all.rbegin(); table != all.rend(); ++table) {
      if (is_leftover(*table)) target_.run("DROP TABLE " + *table + " CASCADE");
    }
  });
}

void Target::make_tables() {
  Rows before = cloud_.query("SELECT * FROM lokadb.org_schemas_and_extensions()");
  Rows commands = cloud_.query("SELECT * FROM lokadb.org_tables($1, $2)", {org_, label()});
  in_transaction(target_, [&] {
    target_.run("SET LOCAL client_min_messages = warning");
    for (const Login& login : logins_) {
      if (!target_.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {login.user}).empty()) continue;
      std::string password = login.password.empty() ? "" : " PASSWORD " + target_.literal(login.password);
      target_.run("CREATE ROLE " + target_.quoted(login.user) + " LOGIN" + password);
    }
    for (int i = 0; i < before.size(); ++i) target_.run(before.get(i, 0));
    make_types();
    for (int i = 0; i < commands.size(); ++i) target_.run(commands.get(i, 0));
  });
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
  std::string list;
  for (const std::string& table : tables()) list += (list.empty() ? "" : ", ") + table;
  // Whoever has any right there: after a first try that was cut off, some have lost the right to write already.
  Rows grantees = target_.query(
      "SELECT DISTINCT quote_ident(pg_get_userbyid(x.grantee)) FROM pg_class c, aclexplode(c.relacl) x WHERE "
      "c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND x.grantee <> c.relowner AND x.grantee <> 0");
  for (int i = 0; i < grantees.size(); ++i) {
    writers_.push_back(grantees.get(i, 0));
    target_.run("REVOKE INSERT, UPDATE, DELETE ON " + list + " FROM " + grantees.get(i, 0));
  }
  target_.run("BEGIN; SET LOCAL lock_timeout = '60s'; LOCK TABLE " + list + " IN SHARE ROW EXCLUSIVE MODE; COMMIT");
}

void Target::allow_writers() {
  for (const std::string& table : tables())
    for (const std::string& role : writers_)
      target_.run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + table + " TO " + role);
}

void Target::remove_label() {
  for (const std::string& table : tables())
    target_.run("COMMENT ON TABLE " + table + " IS " + target_.literal("lokadb: left by organization " + org_));
}

}  // namespace lokadb::cli
