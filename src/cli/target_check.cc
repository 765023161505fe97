// Target: what is looked at before a move.
#include <set>

#include "cli/move_org.h"
#include "cli/sql_files.h"

namespace lokadb::cli {

namespace {

// The ICU locale had another name before PostgreSQL 17.
constexpr char kLocale[] =
    "SELECT pg_encoding_to_char(d.encoding), d.datlocprovider, d.datcollate, d.datctype, "
    "coalesce(to_jsonb(d)->>'datlocale', "
    "to_jsonb(d)->>'daticulocale', ''), coalesce(d.datcollversion, '') FROM pg_database d WHERE d.datname = "
    "current_database()";

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

void Target::check() {
  std::vector<std::string> found = problems();
  if (found.empty()) return;
  std::string text = "organization " + org_ + " cannot be moved to " + name() + ", and nothing was changed:";
  for (const std::string& p : found) text += "\n  - " + p;
  throw Failure{text, kRefused, "", found};
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
  auto named = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (int i = 0; i < here.columns(); ++i)
    if (here.get(0, i) != there.get(0, i))
      found.push_back(std::string("its ") + what[i] + " is " + named(there.get(0, i)) + ", the cloud's is " +
                      named(here.get(0, i)) + ": texts would sort or compare differently");
  Rows cloud_side = cloud_.query("SELECT * FROM lokadb.move_problems($1)", {org_});
  for (int i = 0; i < cloud_side.size(); ++i) found.push_back(cloud_side.get(i, 0));
  Rows state = cloud_.query("SELECT server, database_id FROM lokadb.organizations WHERE org = $1", {org_});
  if (state.size() > 0 && !state.is_null(0, 0))
    found.push_back("the organization has a database of its own already: bring it home first (-back)");
  add_object_problems(found);
  Rows wrong = target_.query(sql_file("organization/roles.sql"), {target_.text_array(roles())});
  for (int i = 0; i < wrong.size(); ++i) found.push_back(wrong.get(i, 0));
  if (found.empty()) add_login_problem(found);
  if (found.empty()) add_problems_of_trial(found);
  return found;
}

// What is there already under a name that is to be made, and what cannot be made there.
void Target::add_object_problems(std::vector<std::string>& found) {
  std::string plan = cloud_.value("SELECT lokadb.org_plan()");
  Rows objects = target_.query(sql_file("organization/problems.sql"),
                               {plan, target_.text_array(leftover_comments()), label_of(database_id_)});
  for (int i = 0; i < objects.size(); ++i) found.push_back(objects.get(i, 0));
  std::string query = cloud_.value("SELECT lokadb.type_definition_query()");
  Rows types = cloud_.query("SELECT name, definition FROM lokadb.org_types()");
  for (int i = 0; i < types.size(); ++i) {
    std::string there = target_.value(query, {types.get(i, 0)});
    if (!there.empty() && there != types.get(i, 1))
      found.push_back("its type " + types.get(i, 0) + " is another than the cloud's: " + there + " there, " +
                      types.get(i, 1) + " here; change or drop it there");
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

void Target::check_label() {
  std::string database_id =
      cloud_.value("SELECT database_id FROM lokadb.organizations WHERE org = $1 AND server IS NOT NULL", {org_});
  if (!database_id.starts_with(identity_ + "-"))
    throw Failure{name() + " is not the database of organization " + org_ +
                  ", and nothing was changed: leave -to out, or name that one"};
  for (const std::string& table : tables()) {
    std::string said = comment(table);
    if (said != label_of(database_id))
      throw Failure{"table " + table + " in " + name() + " is not labelled as that of organization " + org_ + " (" +
                    (said.empty() ? "no label" : said) + "): this is not its database"};
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

}  // namespace lokadb::cli
