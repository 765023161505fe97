#include <set>

#include "cli/move_org.h"

namespace lokadb::cli {

namespace {

// Which database of which cluster: unlike its name, the same from wherever it is asked.
constexpr char kIdentity[] =
    "SELECT (SELECT system_identifier FROM pg_control_system()) || '-' || (SELECT oid FROM pg_database WHERE datname = "
    "current_database())";

constexpr char kLocale[] =
    "SELECT pg_encoding_to_char(encoding), datlocprovider, datcollate, datctype, coalesce(daticulocale, ''), "
    "coalesce(datcollversion, '') FROM pg_database WHERE datname = current_database()";

}  // namespace

Target::Target(Connection& cloud, Connection& target, std::string org, Login fdw, Login direct)
    : cloud_(cloud),
      target_(target),
      org_(std::move(org)),
      logins_{std::move(fdw), std::move(direct)},
      database_id_(target.value(kIdentity)) {}

std::string Target::label() const { return "lokadb: organization " + org_ + " database " + database_id_; }

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

void Target::check() {
  std::vector<std::string> found = problems();
  if (found.empty()) return;
  std::string text = "organization " + org_ + " cannot be moved to " + name() + ", and nothing was changed:";
  for (const std::string& p : found) text += "\n  - " + p;
  throw Failure{text, kRefused, "", found};
}

std::vector<std::string> Target::problems() {
  std::vector<std::string> found;
  if (cloud_.value(kIdentity) == database_id_) found.push_back("it is the cloud database itself: name another");
  if (target_.version() / 10000 < cloud_.version() / 10000)
    found.push_back("it is PostgreSQL " + std::to_string(target_.version() / 10000) + ", older than the cloud's " +
                    std::to_string(cloud_.version() / 10000));
  Rows here = cloud_.query(kLocale), there = target_.query(kLocale);
  const char* what[] = {"encoding",       "locale provider", "collation",
                        "character type", "ICU locale",      "version of the collation"};
  for (int i = 0; i < here.columns(); ++i)
    if (here.get(0, i) != there.get(0, i))
      found.push_back(std::string("its ") + what[i] + " is " + there.get(0, i) + ", the cloud's is " + here.get(0, i) +
                      ": texts would sort or compare differently");
  Rows cloud_side = cloud_.query("SELECT * FROM lokadb.move_problems($1)", {org_});
  for (int i = 0; i < cloud_side.size(); ++i) found.push_back(cloud_side.get(i, 0));
  Rows state = cloud_.query("SELECT server, database_id FROM lokadb.organizations WHERE org = $1", {org_});
  if (state.size() > 0 && !state.is_null(0, 0))
    found.push_back("the organization has a database of its own already: bring it home first (-back)");
  add_table_problems(found);
  return found;
}

void Target::add_table_problems(std::vector<std::string>& found) {
  for (const std::string& table : tables()) {
    if (target_.value("SELECT to_regclass($1)", {table}).empty()) continue;
    std::string comment = target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
    if (comment == label() || comment == "lokadb: left by organization " + org_) continue;  // ours, to be made anew
    found.push_back(comment.starts_with("lokadb: organization")
                        ? "its table " + table + " is labelled for another organization (" + comment + ")"
                        : "it has a table " + table + " already: an empty database is needed");
  }
  bool creates_roles =
      target_.value("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user") == "t";
  for (const std::string& role : roles()) {
    Rows r = target_.query(
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication FROM pg_roles WHERE rolname = $1", {role});
    if (r.size() == 0 && !creates_roles)
      found.push_back("there is no role " + role + ", and this role may not create it");
    if (r.size() > 0 && r.get(0, 0) == "t")
      found.push_back("role " + role +
                      " there has more rights than it may have (superuser, BYPASSRLS, CREATEROLE or REPLICATION)");
  }
  if (target_.value("SELECT has_schema_privilege('public', 'CREATE')") != "t")
    found.push_back("this role may not create tables in its schema public");
}

std::vector<std::string> Target::roles() const {
  std::vector<std::string> names;
  for (const Login& login : logins_) names.push_back(login.user);
  return names;
}

void Target::check_label() {
  for (const std::string& table : tables()) {
    std::string comment = target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
    if (comment != label())
      throw Failure{"table " + table + " in " + name() + " is not labelled as that of organization " + org_ + " (" +
                    (comment.empty() ? "no label" : comment) + "): this is not its database"};
  }
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
      std::string comment = target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {*table});
      if (comment == label() || comment == "lokadb: left by organization " + org_)
        target_.run("DROP TABLE " + *table + " CASCADE");
    }
  });
}

void Target::make_tables() {
  Rows commands = cloud_.query("SELECT * FROM lokadb.org_tables($1, $2)", {org_, label()});
  in_transaction(target_, [&] {
    target_.run("SET LOCAL client_min_messages = warning");
    for (const Login& login : logins_) {
      if (!target_.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {login.user}).empty()) continue;
      std::string password = login.password.empty() ? "" : " PASSWORD " + target_.literal(login.password);
      target_.run("CREATE ROLE " + target_.quoted(login.user) + " LOGIN" + password);
    }
    for (int i = 0; i < commands.size(); ++i) {
      std::string c = commands.get(i, 0);
      // Types stay when tables go, and may be there from a move before.
      if (c.starts_with("CREATE TYPE") || c.starts_with("CREATE DOMAIN")) {
        target_.run("SAVEPOINT t");
        try {
          target_.run(c);
        } catch (const Failure& failure) {
          if (failure.state != "42710") throw;
          target_.run("ROLLBACK TO t");
        }
        target_.run("RELEASE t");
      } else {
        target_.run(c);
      }
    }
  });
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
