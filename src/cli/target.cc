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

// Those that are copied.
std::set<std::string> columns_of(Connection& db, const std::string& table) {
  Rows rows = db.query(
      "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND "
      "attgenerated = ''",
      {table});
  std::set<std::string> names;
  for (int i = 0; i < rows.size(); ++i) names.insert(rows.get(i, 0));
  return names;
}

}  // namespace

Target::Target(Connection& cloud, Connection& target, std::string org, Login fdw, Login direct)
    : cloud_(cloud),
      target_(target),
      org_(std::move(org)),
      logins_{std::move(fdw), std::move(direct)},
      identity_(target.value(kIdentity)),
      cloud_identity_(cloud.value(kIdentity)),
      database_id_(identity_ + "-" + cloud.value("SELECT left(md5($1), 8)", {cloud_identity_})) {}

std::string Target::label_of(const std::string& org, const std::string& database_id) {
  return "lokadb: organization " + org + " database " + database_id;
}

std::string Target::left_label() const { return "lokadb: left by organization " + org_ + " database " + database_id_; }

bool Target::is_left_over(const std::string& comment) const {
  return comment == label_of(org_, database_id_) || comment == left_label();
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

void Target::check() {
  std::vector<std::string> found = problems();
  if (found.empty()) return;
  std::string text = "organization " + org_ + " cannot be moved to " + name() + ", and nothing was changed:";
  for (const std::string& p : found) text += "\n  - " + p;
  throw Failure{text};
}

std::vector<std::string> Target::problems() {
  std::vector<std::string> found;
  if (cloud_identity_ == identity_) found.push_back("it is the cloud database itself: name another");
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
  if (found.empty()) add_login_problem(found);
  if (found.empty()) add_problems_of_trial(found);
  return found;
}

void Target::add_table_problems(std::vector<std::string>& found) {
  for (const std::string& table : tables()) {
    if (target_.value("SELECT to_regclass($1)", {table}).empty()) continue;
    std::string comment = target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
    if (is_left_over(comment)) continue;  // ours, to be made anew
    found.push_back(comment.starts_with("lokadb: ")
                        ? "its table " + table + " is labelled for another organization, or by another cloud (" +
                              comment + "): an empty database is needed"
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
  std::string database_id =
      cloud_.value("SELECT database_id FROM lokadb.organizations WHERE org = $1 AND server IS NOT NULL", {org_});
  if (!database_id.starts_with(identity_))
    throw Failure{name() + " is not the database of organization " + org_ +
                  ", and nothing was changed: leave -to out, or name that one"};
  for (const std::string& table : tables()) {
    std::string comment = target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {table});
    if (comment != label_of(org_, database_id))
      throw Failure{"table " + table + " in " + name() + " is not labelled as that of organization " + org_ + " (" +
                    (comment.empty() ? "no label" : comment) + "): this is not its database"};
  }
}

void Target::check_columns() {
  Rows all = cloud_.query(
      "SELECT t.local_part::text, t.tbl::text, format('public.%I', n.rel) FROM lokadb.tables t, lokadb.name_of(t.tbl) "
      "n "
      "ORDER BY t.position");
  std::string text;
  for (int i = 0; i < all.size(); ++i) {
    std::set<std::string> here = columns_of(cloud_, all.get(i, 0)), there = columns_of(target_, all.get(i, 2));
    for (const std::string& c : there)
      if (!here.contains(c))
        text += "\n  - " + all.get(i, 1) + " has a column " + c +
                " there only, whose values would be lost: drop it there, or add it here";
    for (const std::string& c : here)
      if (!there.contains(c)) text += "\n  - " + all.get(i, 1) + " has no column " + c + " there: add it";
  }
  if (!text.empty())
    throw Failure{"organization " + org_ + " cannot come home from " + name() + ", and nothing was changed:" + text};
}

void Target::clear_leftovers() {
  for (const std::string& table : tables())
    if (!target_.value("SELECT to_regclass($1)", {table}).empty()) return drop_tables();
}

void Target::drop_tables() {
  in_transaction(target_, [&] { drop_tables_now(); });
}

void Target::drop_tables_now() {
  std::vector<std::string> all = tables();
  target_.run("SET LOCAL client_min_messages = warning");
  for (auto table = all.rbegin(); table != all.rend(); ++table)
    if (is_left_over(target_.value("SELECT obj_description(to_regclass($1), 'pg_class')", {*table})))
      target_.run("DROP TABLE " + *table + " CASCADE");
}

void Target::make_tables() {
  in_transaction(target_, [&] { make_tables_now(); });
}

// False: something of that name is there already.
bool Target::try_to_make(const std::string& command) {
  target_.run("SAVEPOINT t");
  try {
    target_.run(command);
  } catch (const Failure& failure) {
    if (failure.state != "42710" && failure.state != "23505") throw;
    target_.run("ROLLBACK TO t; RELEASE t");
    return false;
  }
  target_.run("RELEASE t");
  return true;
}

void Target::make_roles() {
  for (const Login& login : logins_) {
    if (!target_.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {login.user}).empty()) continue;
    std::string password;
    if (!login.password.empty())
      password = " PASSWORD " + target_.literal(target_.encrypted_password(login.user, login.password));
    try_to_make("CREATE ROLE " + target_.quoted(login.user) + " LOGIN" + password);  // another move may be quicker
  }
}

void Target::make_tables_now() {
  Rows commands = cloud_.query("SELECT * FROM lokadb.org_tables($1, $2)", {org_, label_of(org_, database_id_)});
  target_.run("SET LOCAL client_min_messages = warning");
  make_roles();
  for (int i = 0; i < commands.size(); ++i) {
    std::string c = commands.get(i, 0);
    // Types stay when tables go, and may be there from a move before.
    if (c.starts_with("CREATE TYPE") || c.starts_with("CREATE DOMAIN"))
      try_to_make(c);
    else
      target_.run(c);
  }
}

// Makes everything without rows, and takes it back.
void Target::add_problems_of_trial(std::vector<std::string>& found) {
  target_.run("BEGIN; SET LOCAL lock_timeout = '10s'");
  try {
    drop_tables_now();
    make_tables_now();
    make_constraints();
  } catch (const Failure& failure) {
    found.push_back("its tables cannot be made there: " + failure.text + ". Make there what is missing first");
  }
  target_.run("ROLLBACK");
}

// As the cloud will log in. A role that is not there yet will have the password.
void Target::add_login_problem(std::vector<std::string>& found) {
  if (target_.value("SELECT 1 FROM pg_roles WHERE rolname = $1", {logins_[0].user}).empty()) return;
  try {
    probe_login();
  } catch (const Failure& failure) {
    found.push_back(failure.text);
  }
}

void Target::probe_login() {
  cloud_.run("BEGIN");
  try {
    cloud_.query("SELECT lokadb.probe_login($1, $2, $3, $4, $5)",
                 {target_.host(), target_.port(), target_.database(), logins_[0].user, logins_[0].password});
  } catch (const Failure& failure) {
    cloud_.run("ROLLBACK");
    if (failure.state == "2F003")
      throw Failure{"the server at " + target_.host() + ":" + target_.port() + " lets role " + logins_[0].user +
                    " in without a password, which postgres_fdw does not use for an application's roles: ask for one "
                    "(scram-sha-256) in its pg_hba.conf"};
    throw Failure{"the cloud cannot log in there as " + logins_[0].user + ": " + failure.text};
  }
  cloud_.run("ROLLBACK");
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
