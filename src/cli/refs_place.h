// Where rows are, as refs-diff and refs-sync reach them: all organizations at home, or one that has moved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/connection.h"
#include "cli/flags.h"

namespace lokadb::cli {

using Keys = std::vector<std::string>;

// A PostgreSQL array, for a parameter.
std::string to_array(const Keys& keys);

struct Candidate {
  std::string org;
  std::string table;
  std::string key;
  bool is_missing;  // a row without an entry; else an entry without a row
  auto operator<=>(const Candidate&) const = default;
};

struct RowOwner {
  std::string key;
  std::string org;
};

class RefsPlace {
 public:
  // only_org: nothing but that organization; empty: all that are at home.
  static std::unique_ptr<RefsPlace> home(Connection& cloud, Connection& second, const std::string& only_org);
  // All that have moved. One without a user mapping is reached with the logins of the control plane.
  static std::vector<std::unique_ptr<RefsPlace>> moved(Connection& cloud, Connection& second);

  // Makes sure that the rows can be read. Throws Failure: no login, no answer, the database of somebody else.
  void open(const Flags& flags);
  // Sorted. What is in flight shows up, too.
  std::vector<Candidate> look(const std::vector<std::string>& tables);
  // Which of the keys have rows here. hold: in a transaction of reader(), locked against deletion.
  std::vector<RowOwner> rows(const std::string& table, const std::string& org, const Keys& keys, bool hold);
  // The same on the connections that hold no locks, of any organization here.
  std::vector<RowOwner> rows_unlocked(const std::string& table, const Keys& keys);
  // That the organization is still where this place says.
  bool still_has(const std::string& org);

  Connection& reader() { return direct_ ? *direct_ : second_; }
  const std::string& org() const { return org_; }  // empty: all at home
  std::string name() const { return org_.empty() ? "organizations at home" : "organization " + org_; }
  std::vector<Candidate> candidates;  // of the last look
  bool is_wanted = false;             // else it is only asked whether it has the keys of others
  bool has_failed = false;            // and is not asked any more

 private:
  RefsPlace(Connection& cloud, Connection& second) : cloud_(cloud), second_(second) {}
  void open_directly(const Flags& flags);
  void check_labels();
  void load_keys(const std::string& table);
  std::vector<RowOwner> ask(Connection& connection, const std::string& table, const Value& org, const Keys& keys,
                            bool hold);

  Connection& cloud_;
  Connection& second_;
  std::string org_;
  bool is_home_ = false;
  std::string generation_, database_id_, connection_;
  bool has_mapping_ = true;
  std::unique_ptr<Connection> direct_;  // to its database, where the cloud has no access
};

}  // namespace lokadb::cli
