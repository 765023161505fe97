#include "rewriting.h"

#include <algorithm>

#include "sql/parse.h"

namespace lokadb::router {

namespace {

const route::Bound& bound_of(const route::Analysis& analysis, std::uint16_t relation) {
  return *std::find_if(analysis.bound.begin(), analysis.bound.end(),
                       [relation](const route::Bound& b) { return b.relation == relation; });
}

const catalog::Table& table_of(const route::Analysis& analysis, std::uint16_t relation) {
  return analysis.catalog->tables()[bound_of(analysis, relation).table];
}

// All tables of a cloud have one type of tenant; columns may be called differently.
sql::TenantCondition condition(const catalog::Table& table, const std::string& value) {
  return {table.columns[table.tenant].name, value, table.tenant_type == catalog::ValueType::Text};
}

// `edit` on what was made so far; nothing if it cannot be done.
template <class Edit>
bool apply(std::optional<sql::Rewritten>& so_far, const std::string& statement, const Edit& edit) {
  const std::string& text = so_far ? so_far->text : statement;
  sql::Parsed parsed = sql::parse_sql(text);
  if (parsed.statements.size() != 1) return false;
  std::optional<sql::Rewritten> next = edit(text, parsed.statements.front());
  if (!next) return false;
  if (so_far) next->positions = composed(so_far->positions, next->positions);
  so_far = std::move(next);
  return true;
}

}  // namespace

std::optional<sql::Rewritten> by_local_parts(const route::Analysis& analysis, const std::string& statement) {
  std::optional<sql::Rewritten> out;
  for (std::uint16_t relation : analysis.local_parts) {
    const catalog::Table& table = table_of(analysis, relation);
    bool is_done = apply(out, statement, [&](const std::string& text, const sql::Statement& facts) {
      return sql::rename_relation(text, facts, relation, table.local_schema, table.local_name);
    });
    if (!is_done) return std::nullopt;  // the root says what it cannot do
  }
  return out;
}

std::optional<sql::Rewritten> rewritten(const Rewriting& r, const std::string& statement) {
  if (r.relations.empty()) return by_local_parts(r.analysis, statement);
  std::optional<sql::Rewritten> out;
  // Relations whose columns have one name at a time; the target of UPDATE or DELETE last, behind its WHERE.
  std::map<std::string, std::vector<std::uint16_t>> read;
  std::optional<std::uint16_t> target;
  for (std::uint16_t relation : r.relations) {
    const route::Bound& bound = bound_of(r.analysis, relation);
    const catalog::Table& table = table_of(r.analysis, relation);
    if (bound.is_target)
      target = relation;
    else
      read[table.columns[table.tenant].name].push_back(relation);
  }
  // Wrapping one relation gives it another number, so that all must have one column.
  if (read.size() > 1) read.clear();
  for (const auto& [column, relations] : read)
    apply(out, statement, [&](const std::string& text, const sql::Statement& facts) {
      return sql::wrap_relations(text, facts, relations, condition(table_of(r.analysis, relations.front()), r.tenant));
    });
  if (target)
    apply(out, statement, [&](const std::string& text, const sql::Statement& facts) {
      return sql::restrict_target(text, facts, condition(table_of(r.analysis, *target), r.tenant));
    });
  return out;
}

Rewrites::Ptr Rewrites::get(const Rewriting& r, const std::string& statement, bool is_kept) {
  if (!is_kept) return std::make_shared<const std::optional<sql::Rewritten>>(rewritten(r, statement));
  std::string key = statement + '\0' + r.tenant + '\0';
  for (std::uint16_t relation : r.relations) key += std::to_string(relation) + ',';
  // The same text may mean other tables under another search_path, or have another definition later.
  for (std::uint16_t number : r.analysis.tables) {
    const catalog::Table& table = r.analysis.catalog->tables()[number];
    key += table.quoted + ' ' + table.columns[table.tenant].name + ' ' + table.local_part + ',';
  }
  if (Ptr known = find(key)) return known;
  auto made = std::make_shared<const std::optional<sql::Rewritten>>(rewritten(r, statement));
  keep(key, made);
  return made;
}

Rewrites::Ptr Rewrites::find(const std::string& key) const {
  std::lock_guard lock(mutex_);
  auto it = known_.find(key);
  return it != known_.end() ? it->second : nullptr;
}

void Rewrites::keep(const std::string& key, Ptr rewritten) {
  constexpr std::size_t kOverhead = 256;
  std::size_t bytes = kOverhead + key.size() + (*rewritten ? (*rewritten)->text.size() : 0);
  std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kLimit) {  // all anew: whatever is in use is back soon
    known_.clear();
    bytes_ = 0;
  }
  if (known_.emplace(key, std::move(rewritten)).second) bytes_ += bytes;
}

}  // namespace lokadb::router
