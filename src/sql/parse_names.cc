// Scopes, relations, and which relation a column belongs to.
#include <algorithm>

#include "sql/reader.h"

namespace lokadb::sql {
namespace {

constexpr RelationSet bit(std::size_t relation) { return RelationSet{1} << relation; }

const Relation::Output* find_output(const Relation& relation, std::string_view name) {
  for (const Relation::Output& output : relation.outputs)
    if (output.name == name) return &output;
  return nullptr;
}

}  // namespace

std::string joined_name(Nodes name) {
  std::string joined;
  for (const Node* part : name) {
    std::string_view word = string_of(part);
    if (word == "pg_catalog" && name.size() > 1 && part == name.front()) continue;
    if (!joined.empty()) joined += '.';
    joined += word;
  }
  return joined;
}

void StatementReader::not_understood(std::string what) {
  auto& list = out_.not_understood;
  if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(std::move(what));
}

std::uint16_t StatementReader::add_scope(std::uint16_t parent) {
  auto index = static_cast<std::uint16_t>(out_.scopes.size());
  if (index >= 4096) {  // far from kNone, and no statement of people
    not_understood("too many scopes");
    return parent == kNone ? 0 : parent;
  }
  Scope scope;
  scope.parent = parent;
  out_.scopes.push_back(std::move(scope));
  scope_owners_.push_back(index);
  return index;
}

// What an ON clause or a LATERAL item sees of its FROM list: less than all of it.
std::uint16_t StatementReader::add_view_of_scope(std::uint16_t scope, RelationSet visible) {
  std::uint16_t view = add_scope(out_.scopes[scope].parent);
  std::vector<std::uint16_t> relations;
  for (std::uint16_t relation : out_.scopes[scope].relations)
    if (visible & bit(relation)) relations.push_back(relation);
  out_.scopes[view].relations = std::move(relations);
  out_.scopes[view].has_unknown_columns = out_.scopes[scope].has_unknown_columns;
  scope_owners_[view] = scope_owners_[scope];
  return view;
}

std::uint16_t StatementReader::add_relation(Relation relation, std::uint16_t scope) {
  if (out_.relations.size() >= kMaxRelations) {
    not_understood("more than 64 relations");
    return kMaxRelations - 1;
  }
  auto index = static_cast<std::uint16_t>(out_.relations.size());
  relation.scope = scope;
  out_.relations.push_back(std::move(relation));
  if (scope != kNone) out_.scopes[scope].relations.push_back(index);
  return index;
}

void StatementReader::apply_alias(Relation& relation, const PgQuery__Alias* alias) {
  if (!alias) return;
  relation.alias = alias->aliasname;
  relation.has_alias = true;
  relation.has_column_aliases = alias->n_colnames > 0;
  std::size_t i = 0;
  for (const Node* name : LOKADB_NODES(alias, colnames)) {
    if (i < relation.outputs.size())
      relation.outputs[i].name = string_of(name);
    else
      relation.outputs.push_back({std::string(string_of(name)), std::nullopt});
    ++i;
  }
}

StatementReader::CommonTable* StatementReader::find_common_table(std::string_view name) {
  for (auto it = common_tables_.rbegin(); it != common_tables_.rend(); ++it)
    if (it->name == name) return &*it;
  return nullptr;
}

std::uint16_t StatementReader::read_range_var(const PgQuery__RangeVar* var, std::uint16_t scope, Use use) {
  Relation relation;
  relation.catalog = var->catalogname;
  relation.schema = var->schemaname;
  relation.name = relation.alias = var->relname;
  relation.is_only = !var->inh;
  relation.use = use;
  relation.location = var->location;
  CommonTable* table = use == Use::Read && relation.schema.empty() ? find_common_table(relation.name) : nullptr;
  if (table) {
    relation.kind = Relation::Kind::CommonTable;
    relation.outputs = table->outputs.columns;
    relation.outputs_are_known = table->is_finished && table->outputs.are_known;
    if (!table->is_finished) out_.has_recursion = true;
    // Renaming the columns of "*" would go wrong; so would letting one of two mentions speak for the rows of both.
    apply_alias(relation, var->alias);
    if (relation.has_column_aliases && !relation.outputs_are_known) not_understood("column aliases");
    std::uint16_t index = add_relation(std::move(relation), scope);
    table->mentions.push_back(index);
    return index;
  }
  apply_alias(relation, var->alias);
  if (relation.has_column_aliases) not_understood("column aliases of a table");
  relation.outputs.clear();
  return add_relation(std::move(relation), scope);
}

std::optional<std::uint16_t> StatementReader::find_alias(std::uint16_t scope, std::string_view schema,
                                                         std::string_view alias) const {
  for (; scope != kNone; scope = out_.scopes[scope].parent) {
    for (std::uint16_t index : out_.scopes[scope].relations) {
      const Relation& relation = out_.relations[index];
      if (relation.alias != alias) continue;
      if (schema.empty() || (!relation.has_alias && relation.schema == schema)) return index;
    }
  }
  return std::nullopt;
}

bool StatementReader::is_chain_empty(std::uint16_t scope) const {
  for (; scope != kNone; scope = out_.scopes[scope].parent)
    if (!out_.scopes[scope].relations.empty() || out_.scopes[scope].has_unknown_columns) return false;
  return true;
}

Column StatementReader::resolve(std::uint16_t scope, std::string_view name) const {
  const std::uint16_t innermost = scope;
  for (; scope != kNone; scope = out_.scopes[scope].parent) {
    const Scope& here = out_.scopes[scope];
    RelationSet visible = 0;
    for (std::uint16_t index : here.relations) visible |= bit(index);
    for (const Merged& merged : merged_)
      if (merged.scope == scope_owners_[scope] && merged.name == name && (merged.members & visible))
        return merged.column;
    std::uint16_t having = kNone, possible = kNone;
    std::size_t having_count = 0, possible_count = 0;
    for (std::uint16_t index : here.relations) {
      const Relation& relation = out_.relations[index];
      if (find_output(relation, name)) {
        having = index;
        ++having_count;
      } else if (!relation.outputs_are_known) {
        possible = index;
        ++possible_count;
      }
    }
    if (having_count == 1) return {having, scope, std::string(name)};
    bool is_certain = possible_count == 1 && having_count == 0 && !here.has_unknown_columns;
    if (is_certain && is_chain_empty(here.parent)) return {possible, scope, std::string(name)};
    if (possible_count > 0 || having_count > 0 || here.has_unknown_columns) return {kNone, scope, std::string(name)};
  }
  return {kNone, innermost, std::string(name)};
}

// The column that an expression is, alone. Nothing for fields of the row proposed for insertion.
std::optional<Column> StatementReader::column_of(const Node* node) const {
  if (!is_node(node, PG_QUERY__NODE__NODE_COLUMN_REF) || !level_) return std::nullopt;
  Nodes fields = LOKADB_NODES(node->column_ref, fields);
  std::string_view name = fields.empty() ? std::string_view() : string_of(fields.back());
  if (fields.size() > 3 || name.empty()) return std::nullopt;
  if (fields.size() == 1) return resolve(level_->scope, name);
  std::string_view alias = string_of(fields[fields.size() - 2]);
  if (is_in_conflict_ && alias == "excluded") return std::nullopt;
  auto relation = find_alias(level_->scope, fields.size() == 3 ? string_of(fields[0]) : std::string_view(), alias);
  if (!relation) return std::nullopt;
  return Column{*relation, out_.relations[*relation].scope, std::string(name)};
}

void StatementReader::use_column(Column column, ColumnUse::How how, bool may_be_output) {
  bool is_bare = level_ && level_->is_behind_where && calls_ == 0;
  for (ColumnUse& use : out_.columns) {
    if (use.how == how && use.column.relation == column.relation && use.column.scope == column.scope &&
        use.column.name == column.name) {
      use.may_be_output = use.may_be_output && may_be_output;
      use.is_bare |= is_bare;
      return;
    }
  }
  out_.columns.push_back({std::move(column), how, may_be_output, is_bare});
}

void StatementReader::read_column_ref(const PgQuery__ColumnRef* ref) {
  Nodes fields = LOKADB_NODES(ref, fields);
  if (fields.empty() || !level_) return not_understood("column reference");
  bool is_star = is_node(fields.back(), PG_QUERY__NODE__NODE_A_STAR);
  std::string name(is_star ? std::string_view("*") : string_of(fields.back()));
  if (fields.size() == 1) {
    if (is_star) {
      for (std::uint16_t relation : out_.scopes[level_->scope].relations)
        use_column({relation, out_.relations[relation].scope, name}, how_);
      return;
    }
    return use_column(resolve(level_->scope, name), how_);
  }
  std::string_view alias = string_of(fields[fields.size() - 2]);
  if (is_in_conflict_ && alias == "excluded") return;
  if (fields.size() > 3) return not_understood("column of a named database");
  auto relation = find_alias(level_->scope, fields.size() == 3 ? string_of(fields[0]) : std::string_view(), alias);
  // A field of a composite column looks like this, too.
  if (!relation) return not_understood("column of " + std::string(alias));
  use_column({*relation, out_.relations[*relation].scope, name}, how_);
}

}  // namespace lokadb::sql
