// The database an organization moves to, and taking a move back.
#pragma once

#include <string>

#include "cli/connection.h"
#include "cli/credentials.h"

namespace lokadb::cli {

class Target {
 public:
  // fdw, direct: the roles there; those that are not there yet are made, with these passwords if they are not empty.
  // Only needed for the way there.
  Target(Connection& cloud, Connection& target, std::string org, Login fdw, Login direct);

  // Everything that would make the move fail, in one Failure; nothing is changed.
  void check();
  // That this is the database which the organization's tables say it is.
  void check_label();
  // That its tables have the columns that the cloud's have, no less and no more.
  void check_columns();
  // Tables left by a move that was cut off, or from before the organization came home.
  void clear_leftovers();
  void make_tables();
  void make_constraints();
  // That the cloud's application roles can use the fdw login.
  void probe_login();
  void drop_tables();
  // Takes the right to write away there and waits for every COMMIT under way. allow_writers() gives back what was
  // taken, by this process or by one that was killed.
  void stop_writers();
  void allow_writers();
  void remove_label();

  std::string database_id() const { return database_id_; }
  std::string where() const;  // connection string without secrets
  std::string name() const;   // for people

 private:
  std::vector<std::string> problems();
  void add_object_problems(std::vector<std::string>& found);
  void add_login_problem(std::vector<std::string>& found);
  void add_problems_of_trial(std::vector<std::string>& found);
  // Within a transaction of the target.
  void drop_tables_now();
  void make_tables_now();
  void make_roles();
  void make_types();
  std::vector<std::string> tables() const;  // quoted, in schema public
  std::vector<std::string> roles() const;
  std::string label_of(const std::string& database_id) const;
  std::string left_label() const;
  std::string comment(const std::string& table) const;
  std::vector<std::string> leftover_comments() const;  // of tables that a move may drop and make anew
  Connection& cloud_;
  Connection& target_;
  std::string org_;
  std::vector<Login> logins_;
  std::string identity_, cloud_identity_;  // which database of which cluster
  std::string database_id_;                // with the cloud's: another cloud's tables are never taken for ours
};

// Only one move of an organization at a time; the lock goes with the session.
bool try_lock_move(Connection& cloud, const std::string& org);

struct Undone {
  bool ok;
  std::string text;  // what the state is now
};
// session: that of the move, which may be dead; db, to: how to reach the cloud and the organization's database. They do
// not throw.
Undone undo_move(Connection& session, const std::string& db, const std::string& to, const std::string& org);
Undone undo_return(Connection& session, const std::string& db, const std::string& to, const std::string& org);
void analyze_parts(Connection& cloud, const std::string& org);

}  // namespace lokadb::cli
