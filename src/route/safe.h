// Which of PostgreSQL's functions, operators and types mean the same in every database and session (SPEC C3), so that a
// statement that uses nothing else gives the same answer in the organization's database.
#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "route/reasons.h"
#include "sql/statement.h"

namespace lokadb::route {

// Immutable, or stable and dependent on repeated settings (TimeZone, DateStyle ...) and the clock alone.
bool is_safe_function(std::string_view name);
bool is_safe_in_from(std::string_view name);  // set-returning ones that may stand in FROM
bool is_safe_operator(std::string_view name);
bool is_safe_type(std::string_view name);  // as the parser names them: int8, varchar; arrays too: int8[]
// Why a known function is not on the list, for people; "" if nothing is known of it.
std::string_view why_unsafe(std::string_view name);

struct Fault {
  Reason reason = Reason::None;
  std::string detail;
  explicit operator bool() const { return reason != Reason::None; }
};

// Why no statement on the table goes direct (SPEC C1).
Fault table_fault(const catalog::Table& table);
// The first function, operator, type, collation or cast of the statement that may mean something else elsewhere.
//   names_user_types  a column whose type is not PostgreSQL's own is named in it
Fault find_unsafe(const catalog::Catalog& catalog, const sql::Statement& statement, bool names_user_types);

}  // namespace lokadb::route
