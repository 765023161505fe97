#include "route/rights.h"

#include <nlohmann/json.hpp>

namespace lokadb::route {

namespace {

using catalog::Table;
using Json = nlohmann::ordered_json;

}  // namespace

Rights::Rights(const Names& names, const sql::Statement& statement, const Analysis& analysis)
    : names_(names), statement_(statement), analysis_(analysis) {
  for (const Bound& b : analysis.bound) write(b.relation);
  for (const sql::ColumnUse& use : statement.columns) read(use);
}

void Rights::set_fault(Reason reason, std::string detail) {
  if (!fault_) fault_ = {reason, std::move(detail)};
}

void Rights::add(const Table& table, const char* privilege) { needed_[table.number][privilege]; }

void Rights::add(const Table& table, const char* privilege, std::uint16_t column) {
  needed_[table.number][privilege].insert(column);
}

// What the use of the relation itself takes; columns come on top.
void Rights::write(std::uint16_t relation) {
  const Table& table = *names_.table(relation);
  const sql::Relation& r = statement_.relations[relation];
  switch (r.use) {
    case sql::Use::Insert:
    case sql::Use::CopyFrom:
      add(table, "INSERT");
      if (statement_.insertion) insert(table, *statement_.insertion);
      if (statement_.copying)
        for (const std::string& name : statement_.copying->columns)
          if (std::uint16_t c = table.column(name); c != catalog::kNoColumn) add(table, "INSERT", c);
      if (statement_.copying && statement_.copying->columns.empty())
        for (std::uint16_t c = 0; c < table.columns.size(); ++c) add(table, "INSERT", c);
      break;
    case sql::Use::Update:
      add(table, "UPDATE");
      for (const sql::Assignment& a : statement_.assignments)
        if (std::uint16_t c = table.column(a.column); c != catalog::kNoColumn) add(table, "UPDATE", c);
      break;
    case sql::Use::Delete:
      add(table, "DELETE");
      break;
    default:
      add(table, "SELECT");
  }
  if (r.is_row_locked) add(table, "UPDATE");
}

void Rights::insert(const Table& table, const sql::Insertion& insertion) {
  for (const std::string& name : insertion.columns)
    if (std::uint16_t c = table.column(name); c != catalog::kNoColumn) add(table, "INSERT", c);
  if (insertion.columns.empty())
    for (std::uint16_t c = 0; c < table.columns.size(); ++c) add(table, "INSERT", c);
  // A conflict target is read.
  for (const std::string& name : insertion.conflict_columns)
    if (std::uint16_t c = table.column(name); c != catalog::kNoColumn) add(table, "SELECT", c);
  for (const catalog::UniqueSet& set : table.unique_sets)
    if (set.name == insertion.conflict_constraint)
      for (std::uint16_t c : set.columns) add(table, "SELECT", c);
  if (insertion.conflict == sql::Insertion::Conflict::DoUpdate) add(table, "UPDATE");
  for (const sql::Assignment& a : statement_.assignments)
    if (std::uint16_t c = table.column(a.column); c != catalog::kNoColumn) add(table, "UPDATE", c);
}

void Rights::read(const sql::ColumnUse& use) {
  using How = sql::ColumnUse::How;
  if (use.how == How::Inserted || use.how == How::Updated) {
    // Targets are in insertion and assignments; their types matter all the same.
    Names::Found found = names_.find(use.column);
    if (found.kind == Names::Found::Kind::Column)
      check_type(names_.table(found.place.relation)->columns[found.place.column]);
    return;
  }
  if (use.column.name == "*") return read_star(use.column);
  Names::Found found = names_.find(use.column);
  switch (found.kind) {
    case Names::Found::Kind::Column:
      read_place(found.place);
      check_type(names_.table(found.place.relation)->columns[found.place.column]);
      break;
    case Names::Found::Kind::Several:
      for (const Place& place : found.several) {
        read_place(place);
        check_type(names_.table(place.relation)->columns[place.column]);
      }
      break;
    case Names::Found::Kind::Other:
      break;  // its own parts are columns of this list, too
    case Names::Found::Kind::System:
      set_fault(Reason::SystemColumn, use.column.name);
      break;
    case Names::Found::Kind::WholeRow:
      set_fault(Reason::WholeRow, use.column.name);
      break;
    case Names::Found::Kind::Nothing:
      if (!use.may_be_output) set_fault(Reason::ColumnNotFound, use.column.name);
  }
}

void Rights::read_place(const Place& place) { add(*names_.table(place.relation), "SELECT", place.column); }

void Rights::read_all(std::uint16_t relation) {
  if (relation >= statement_.relations.size()) return;
  if (const Table* table = names_.table(relation)) {
    for (std::uint16_t c = 0; c < table->columns.size(); ++c) {
      add(*table, "SELECT", c);
      has_user_types_ |= table->columns[c].is_user_type();
    }
    return;
  }
  // What a subquery shows is among its own columns; only what is behind a star of its own has to be followed.
  for (const auto& output : statement_.relations[relation].outputs)
    if (output.name == "*" && output.from) read_all(output.from->relation);
}

void Rights::read_star(const sql::Column& column) {
  if (column.relation != sql::kNone) return read_all(column.relation);
  if (column.scope < statement_.scopes.size())
    for (std::uint16_t relation : statement_.scopes[column.scope].relations) read_all(relation);
}

// Enums, domains and arrays of these and of PostgreSQL's types work in every database by PostgreSQL's own operators.
bool Rights::is_extension_type(std::uint32_t type) const {
  using Kind = catalog::UserType::Kind;
  for (int depth = 0; depth < 8; ++depth) {
    if (type < catalog::kFirstUserOid) return false;
    const catalog::UserType* user = analysis_.catalog->type(type);
    if (!user) return true;
    if (user->kind == Kind::Enum) return false;
    if (user->kind == Kind::Domain)
      type = user->base;
    else if (user->kind == Kind::Array)
      type = user->element;
    else
      return true;
  }
  return true;
}

void Rights::check_type(const catalog::Column& column) {
  if (!column.is_user_type()) return;
  has_user_types_ = names_user_types_ = true;
  if (is_extension_type(column.type)) set_fault(Reason::ExtensionType, column.name);
}

std::string Rights::argument() const {
  Json all = Json::object();
  for (const auto& [number, privileges] : needed_) {
    const Table& table = analysis_.catalog->tables()[number];
    Json& mine = all[table.quoted];
    for (const auto& [privilege, columns] : privileges) {
      mine[privilege] = Json::array();
      for (std::uint16_t c : columns) mine[privilege].push_back(table.columns[c].name);
    }
  }
  return all.dump();
}

std::string tables_argument(const Analysis& analysis) {
  Json all = Json::object();
  for (std::uint16_t number : analysis.tables) {
    const Table& table = analysis.catalog->tables()[number];
    all[table.quoted] = table.fingerprint;
  }
  return all.dump();
}

}  // namespace lokadb::route
