#include "cli/refs_place.h"

#include <algorithm>

#include "cli/credentials.h"

namespace lokadb::cli {

namespace {

// A connection string with another login; the last value of a word counts.
std::string with_login(const std::string& conninfo, const Login& login) {
  return conninfo + " user=" + conninfo_value(login.user) + " password=" + conninfo_value(login.password);
}

Login direct_login(const Flags& flags, const std::string& org) {
  try {
    return stored_login(flags, org, "direct");
  } catch (const Failure& direct) {
    try {
      return stored_login(flags, org, "fdw");
    } catch (const Failure&) {
      throw direct;
    }
  }
}

}  // namespace

std::string to_array(const Keys& keys) {
  std::string out = "{";
  for (const std::string& key : keys) {
    if (out.size() > 1) out += ',';
    out += '"';
    for (char c : key) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

std::unique_ptr<RefsPlace> RefsPlace::home(Connection& cloud, Connection& second, const std::string& only_org) {
  std::unique_ptr<RefsPlace> place(new RefsPlace(cloud, second));
  place->org_ = only_org;
  place->is_home_ = true;
  return place;
}

std::vector<std::unique_ptr<RefsPlace>> RefsPlace::moved(Connection& cloud, Connection& second) {
  std::vector<std::unique_ptr<RefsPlace>> places;
  Rows rows = cloud.query(
      "SELECT org, generation, database_id, connection, has_mapping FROM lokadb.moved ORDER BY length(org), org");
  for (int i = 0; i < rows.size(); ++i) {
    places.emplace_back(new RefsPlace(cloud, second));
    RefsPlace& p = *places.back();
    p.org_ = rows.get(i, 0);
    p.generation_ = rows.get(i, 1);
    p.database_id_ = rows.get(i, 2);
    p.connection_ = rows.get(i, 3);
    p.has_mapping_ = rows.get(i, 4) == "t";
  }
  return places;
}

void RefsPlace::open(const Flags& flags) {
  if (!is_home_ && !has_mapping_ && !direct_) open_directly(flags);
}

void RefsPlace::open_directly(const Flags& flags) {
  if (!flags.has("control-plane") || !flags.has("key"))
    throw Failure{"the cloud has no access to its database (profile direct): -control-plane and -key are needed"};
  direct_ = std::make_unique<Connection>(with_login(connection_, direct_login(flags, org_)), "lokadb refs");
  check_labels();
}

void RefsPlace::check_labels() {
  Rows tables = cloud_.query("SELECT lokadb.foreign_part('public', tbl) FROM lokadb.tables");
  for (int i = 0; i < tables.size(); ++i) {
    std::string label = direct_->value("SELECT obj_description(to_regclass($1), 'pg_class')", {tables.get(i, 0)});
    if (label == "lokadb: organization " + org_ + " database " + database_id_) continue;
    direct_.reset();
    throw Failure{"its database has no table " + tables.get(i, 0) +
                  " that is labelled for it: it is the database of somebody else, or was made anew"};
  }
}

// The keys of its rows, as a temporary table of the cloud.
void RefsPlace::load_keys(const std::string& table) {
  std::string there = cloud_.value("SELECT lokadb.foreign_part('public', $1::regclass)", {table});
  Rows key = cloud_.query("SELECT quote_ident(key_col), key_type FROM lokadb.tables WHERE tbl = $1::regclass", {table});
  cloud_.run(
      "SET client_min_messages = warning; DROP TABLE IF EXISTS pg_temp.lokadb_keys; CREATE TEMP TABLE lokadb_keys (" +
      key.get(0, 0) + " " + key.get(0, 1) + ")");
  direct_->begin_copy_out("COPY (SELECT " + key.get(0, 0) + " FROM " + there + ") TO STDOUT");
  cloud_.begin_copy_in("COPY pg_temp.lokadb_keys FROM STDIN");
  try {
    while (auto chunk = direct_->next()) cloud_.put(chunk->data.get(), chunk->size);
  } catch (const Failure&) {
    cloud_.end_copy_in();
    throw;
  }
  cloud_.end_copy_in();
}

std::vector<Candidate> RefsPlace::look(const std::vector<std::string>& tables) {
  std::vector<Candidate> found;
  for (const std::string& table : tables) {
    if (direct_) load_keys(table);
    Rows rows =
        cloud_.query("SELECT org, key, kind = 'missing' FROM lokadb.refs_look($1::regclass, $2, $3)",
                     {table, org_.empty() ? Value() : Value(org_), direct_ ? Value("pg_temp.lokadb_keys") : Value()});
    for (int i = 0; i < rows.size(); ++i)
      found.push_back({rows.get(i, 0), table, rows.get(i, 1), rows.get(i, 2) == "t"});
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<RowOwner> RefsPlace::ask(Connection& connection, const std::string& table, const Value& org,
                                     const Keys& keys, bool hold) {
  std::vector<RowOwner> owners;
  if (keys.empty()) return owners;
  std::string sql = cloud_.value("SELECT lokadb.refs_rows_query($1::regclass, $2, $3::text[], $4, $5)",
                                 {table, org, to_array(keys), direct_ ? "false" : "true", hold ? "true" : "false"});
  Rows rows = connection.query(sql);
  for (int i = 0; i < rows.size(); ++i) owners.push_back({rows.get(i, 0), rows.get(i, 1)});
  return owners;
}

std::vector<RowOwner> RefsPlace::rows(const std::string& table, const std::string& org, const Keys& keys, bool hold) {
  return ask(reader(), table, org, keys, hold);
}

std::vector<RowOwner> RefsPlace::rows_unlocked(const std::string& table, const Keys& keys) {
  return ask(direct_ ? *direct_ : cloud_, table, org_.empty() ? Value() : Value(org_), keys, false);
}

bool RefsPlace::still_has(const std::string& org) {
  return cloud_.value("SELECT generation FROM lokadb.moved WHERE org = $1", {org}) == generation_;
}

}  // namespace lokadb::cli
