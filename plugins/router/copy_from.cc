#include "copy_from.h"

#include <algorithm>
#include <vector>

namespace lokadb::router {

std::optional<CopyFrom> copy_through_table(const catalog::Table& table, std::string_view text,
                                           const sql::Statement& facts, std::uint32_t number) {
  if (!facts.copying || !facts.copying->is_from || !facts.copying->is_stream) return std::nullopt;
  auto target = std::find_if(facts.relations.begin(), facts.relations.end(),
                             [](const sql::Relation& r) { return r.use == sql::Use::CopyFrom; });
  if (target == facts.relations.end()) return std::nullopt;
  std::vector<std::string> names = facts.copying->columns;
  if (names.empty())
    for (const catalog::Column& c : table.columns)
      if (!c.is_generated) names.push_back(c.name);
  std::string made, listed;
  for (const std::string& name : names) {
    std::uint16_t column = table.column(name);
    if (column == catalog::kNoColumn) return std::nullopt;  // PostgreSQL says so
    std::string quoted = sql::quoted_name(name);
    made += (made.empty() ? "" : ", ") + quoted + " " + table.columns[column].type_name;
    listed += (listed.empty() ? "" : ", ") + quoted;
  }
  std::string name = "lokadb_copy_" + std::to_string(number);
  auto relation = static_cast<std::uint16_t>(target - facts.relations.begin());
  auto copy = sql::rename_relation(text, facts, relation, "pg_temp", name);
  if (!copy) return std::nullopt;
  std::string insert =
      "\n;INSERT INTO " + table.quoted + " (" + listed + ") SELECT " + listed + " FROM pg_temp." + name;
  copy->text += insert;
  return CopyFrom{"CREATE TEMPORARY TABLE " + name + " (" + made + ") ON COMMIT DROP", std::move(*copy)};
}

}  // namespace lokadb::router
