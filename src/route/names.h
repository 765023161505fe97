// Finds the tables and columns that the names of a statement stand for.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "route/safe.h"
#include "sql/statement.h"

namespace lokadb::route {

// A column of a table under LokaDB. Through a subquery or common table expression the same table can be mentioned more
// than once, each mention with rows of its own.
struct Place {
  std::uint16_t mention = sql::kNone;   // the outermost relation it is reached by; `relation` itself if by one alone
  std::uint16_t relation = sql::kNone;  // of the table
  std::uint16_t column = catalog::kNoColumn;
  bool operator==(const Place&) const = default;
};

class Names {
 public:
  Names(const catalog::Catalog& catalog, const sql::Statement& statement, const catalog::SearchPath& path);

  // The table under LokaDB that a relation is; nullptr: none, or it is not certain.
  const catalog::Table* table(std::uint16_t relation) const { return tables_[relation]; }
  bool has_lokadb_table() const { return has_lokadb_table_; }  // also by a view, a part or a hidden name
  bool has_cloud_table() const { return has_cloud_table_; }
  bool has_active_table() const { return has_active_table_; }
  // Why its relations alone keep the statement on the cloud path.
  const Fault& fault() const { return fault_; }

  struct Found {
    enum class Kind : std::uint8_t {
      Column,
      Several,  // more than one relation has it (USING, or the server's error)
      Other,    // an expression, or a column of something that is not under LokaDB
      WholeRow,
      System,
      Nothing,
    } kind = Kind::Nothing;
    Place place;                 // Kind::Column
    std::vector<Place> several;  // Kind::Several
  };
  Found find(const sql::Column& column) const;

  // The one relation through which the rows of a table are seen; kNone if there are several.
  std::uint16_t only_mention(std::uint16_t relation) const { return mentions_[relation]; }
  // The relation and those around it whose conditions hold for its rows as well.
  sql::RelationSet covering(std::uint16_t relation) const { return covering_[relation]; }

 private:
  void look_at(std::uint16_t number, const catalog::SearchPath& path);
  void count_mentions();
  Found in_relation(std::uint16_t relation, const std::string& name, int depth) const;
  Found in_outputs(std::uint16_t relation, const std::string& name, int depth) const;
  bool has_only_stars_of_tables(const sql::Relation& relation) const;
  void set_fault(Reason reason, std::string detail);

  const catalog::Catalog& catalog_;
  const sql::Statement& statement_;
  std::vector<const catalog::Table*> tables_;
  std::vector<std::uint16_t> mentions_;
  std::vector<sql::RelationSet> covering_;
  bool has_lokadb_table_ = false, has_cloud_table_ = false, has_active_table_ = false;
  Fault fault_;
};

bool is_system_column(std::string_view name);

}  // namespace lokadb::route
