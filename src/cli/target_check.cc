// Target: what is looked at before a move.
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
  if (is_cloud()) found.push_back("it is the cloud database itself: name another");
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
  return found;
}

// What is there already under a name that is to be made, and what cannot be made there.
void Target::add_object_problems(std::vector<std::string>& found) {
  std::string plan = cloud_.value("SELECT lokadb.org_plan()");
  Rows objects =
      target_.query(sql_file("organization/problems.sql"), {plan, target_.text_array(leftover_comments()), label()});
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

void Target::check_label() {
  for (const std::string& table : tables()) {
    std::string said = comment(table);
    if (said != label())
      throw Failure{"table " + table + " in " + name() + " is not labelled as that of organization " + org_ + " (" +
                    (said.empty() ? "no label" : said) + "): this is not its database"};
  }
}

}  // namespace lokadb::cli
