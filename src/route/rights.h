// The columns of a statement: which rights of the client's role they take (SPEC R2), and whether they mean the same in
// the organization's database.
#pragma once

#include <map>
#include <set>
#include <string>

#include "route/analysis.h"
#include "route/names.h"

namespace lokadb::route {

class Rights {
 public:
  // Goes through all columns, assignments and locks. `bound` must have the relations.
  Rights(const Names& names, const sql::Statement& statement, const Analysis& analysis);

  // The first column that keeps the statement from going direct.
  const Fault& fault() const { return fault_; }
  bool has_user_types() const { return has_user_types_; }
  // A column of a user's type is named (and not only in *), so it may be an argument of a function or operator.
  bool names_user_types() const { return names_user_types_; }
  // {"public.documents": {"SELECT": ["id"]}}, the argument p_rights of lokadb.enter.
  std::string argument() const;

 private:
  void read(const sql::ColumnUse& use);
  void read_all(std::uint16_t relation);
  void read_star(const sql::Column& column);
  void read_place(const Place& place);
  void write(std::uint16_t relation);
  void insert(const catalog::Table& table, const sql::Insertion& insertion);
  void add(const catalog::Table& table, const char* privilege);
  void add(const catalog::Table& table, const char* privilege, std::uint16_t column);
  void check_type(const catalog::Column& column);
  bool is_extension_type(std::uint32_t type) const;
  void set_fault(Reason reason, std::string detail);

  const Names& names_;
  const sql::Statement& statement_;
  const Analysis& analysis_;
  Fault fault_;
  bool has_user_types_ = false, names_user_types_ = false;
  std::map<std::uint16_t, std::map<std::string, std::set<std::uint16_t>>> needed_;
};

// {"public.documents": "19:14291"}, the argument p_tables.
std::string tables_argument(const Analysis& analysis);

}  // namespace lokadb::route
