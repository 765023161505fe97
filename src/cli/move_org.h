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
  // Tables left by a move that was cut off, or from before the organization came home.
  void clear_leftovers();
  void make_tables();
  void make_constraints();
  void drop_tables();
  // Takes the right to write away there and waits for every COMMIT under way.
  void stop_writers();
  void allow_writers();
  void remove_label();

  std::string database_id() const { return database_id_; }
  std::string where() const;  // connection string without secrets
  std::string name() const;   // for people

 private:
  std::vector<std::string> problems();
  void add_object_problems(std::vector<std::string>& found);
  void make_types();
  bool is_cloud() const;
  std::vector<std::string> tables() const;  // quoted, in schema public
  std::vector<std::string> roles() const;
  std::string label() const;
  std::string comment(const std::string& table) const;
  std::vector<std::string> leftover_comments() const;  // of tables that a move may drop and make anew
  bool is_leftover(const std::string& table) const;
  Connection& cloud_;
  Connection& target_;
  std::string org_;
  std::vector<Login> logins_;
  std::vector<std::string> writers_;  // quoted; roles that stop_writers() has stopped
  std::string database_id_;
};

// Each says what the state is then; neither throws.
std::string undo_move(const std::string& db, const std::string& org, Target* place);
std::string undo_return(const std::string& db, const std::string& org, Target& place);
void analyze_parts(Connection& cloud, const std::string& org);

}  // namespace lokadb::cli
