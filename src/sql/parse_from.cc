// FROM lists: joins, derived tables, functions; and what ON and USING say about which side.
#include <utility>

#include "sql/reader.h"

namespace lokadb::sql {
namespace {

constexpr RelationSet bit(std::size_t relation) { return RelationSet{1} << relation; }

}  // namespace

StatementReader::Part StatementReader::read_from(const Node* node) {
  Part part;
  if (!node) return part;
  if (depth_ >= 400) {
    not_understood("deep nesting");
    return part;
  }
  ++depth_;
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_RANGE_VAR:
      part.members = bit(read_range_var(node->range_var, level_->scope, Use::Read));
      break;
    case PG_QUERY__NODE__NODE_JOIN_EXPR:
      part = read_join(node->join_expr);
      break;
    case PG_QUERY__NODE__NODE_RANGE_SUBSELECT:
      part = read_derived(node->range_subselect);
      break;
    case PG_QUERY__NODE__NODE_RANGE_FUNCTION:
      part = read_range_function(node->range_function);
      break;
    case PG_QUERY__NODE__NODE_RANGE_TABLE_SAMPLE:
      not_understood("TABLESAMPLE");
      part = read_from(node->range_table_sample->relation);
      break;
    default:
      not_understood(node_name(node));
      out_.scopes[level_->scope].has_unknown_columns = true;
  }
  --depth_;
  return part;
}

// Reads a condition that sees the relations `visible` alone. Returns the relations of its subqueries.
RelationSet StatementReader::read_on(const Node* quals, RelationSet visible, Conditions& conditions) {
  std::uint16_t scope = std::exchange(level_->scope, add_view_of_scope(level_->scope, visible));
  RelationSet nested = std::exchange(level_->nested, 0);
  expression(quals);
  conjuncts(quals, conditions);
  level_->scope = scope;
  return std::exchange(level_->nested, nested);
}

StatementReader::Part StatementReader::read_join(const PgQuery__JoinExpr* join) {
  Part left = read_from(join->larg);
  Part right = read_from(join->rarg);
  if (join->is_natural) not_understood("NATURAL JOIN");
  if (join->alias || join->join_using_alias) not_understood("alias of a join");
  Part whole;
  whole.members = left.members | right.members;
  Conditions on;
  RelationSet in_on = join->quals ? read_on(join->quals, whole.members, on) : 0;
  if (join->n_using_clause > 0) read_using(join, left, right, on);
  whole.nested = left.nested | right.nested | in_on;
  auto keep = [&whole](const Conditions& more) {
    whole.conditions.insert(whole.conditions.end(), more.begin(), more.end());
  };
  auto confine = [this, &on, in_on](const Part& nullable) {
    RelationSet side = nullable.members | nullable.nested;
    settle(nullable.conditions, side);
    settle(on, side | in_on);
  };
  switch (join->jointype) {
    case PG_QUERY__JOIN_TYPE__JOIN_INNER:
      keep(left.conditions);
      keep(right.conditions);
      keep(on);
      return whole;
    case PG_QUERY__JOIN_TYPE__JOIN_LEFT:
      keep(left.conditions);
      confine(right);
      break;
    case PG_QUERY__JOIN_TYPE__JOIN_RIGHT:
      keep(right.conditions);
      confine(left);
      break;
    case PG_QUERY__JOIN_TYPE__JOIN_FULL:
      settle(left.conditions, left.members | left.nested);
      settle(right.conditions, right.members | right.nested);
      break;
    default:
      not_understood("kind of join");
  }
  out_.has_outer_joins = true;
  return whole;
}

void StatementReader::read_using(const PgQuery__JoinExpr* join, const Part& left, const Part& right,
                                 Conditions& conditions) {
  std::uint16_t left_scope = add_view_of_scope(level_->scope, left.members);
  std::uint16_t right_scope = add_view_of_scope(level_->scope, right.members);
  for (const Node* node : LOKADB_NODES(join, using_clause)) {
    std::string name(string_of(node));
    // These columns are of this join, whatever queries around it have.
    auto column_in = [this, &name](std::uint16_t scope) {
      std::uint16_t parent = std::exchange(out_.scopes[scope].parent, kNone);
      Column column = resolve(scope, name);
      out_.scopes[scope].parent = parent;
      return column;
    };
    Equality::Side lefts, rights;
    lefts.column = column_in(left_scope);
    rights.column = column_in(right_scope);
    use_column(*lefts.column, ColumnUse::How::Read);
    use_column(*rights.column, ColumnUse::How::Read);
    Merged merged{scope_owners_[level_->scope], name, *lefts.column, left.members | right.members};
    if (join->jointype == PG_QUERY__JOIN_TYPE__JOIN_RIGHT) merged.column = *rights.column;
    if (join->jointype == PG_QUERY__JOIN_TYPE__JOIN_FULL) merged.column = {kNone, kNone, name};
    add_equality(std::move(lefts), std::move(rights), conditions);
    std::erase_if(merged_, [&merged](const Merged& m) {
      return m.scope == merged.scope && m.name == merged.name && (m.members & merged.members);
    });
    merged_.push_back(std::move(merged));
  }
}

StatementReader::Part StatementReader::read_derived(const PgQuery__RangeSubselect* derived) {
  Part part;
  out_.has_subqueries = true;
  std::uint16_t scope = level_->scope;
  std::uint16_t parent = out_.scopes[scope].parent;
  // LATERAL sees what stands to the left of it.
  if (derived->lateral) parent = add_view_of_scope(scope, ~RelationSet{0});
  if (!is_node(derived->subquery, PG_QUERY__NODE__NODE_SELECT_STMT)) {
    not_understood("subquery in FROM");
    return part;
  }
  auto first = static_cast<std::uint16_t>(out_.relations.size());
  Outputs outputs = read_select(derived->subquery->select_stmt, parent, Place::Derived);
  auto last = static_cast<std::uint16_t>(out_.relations.size());
  Relation relation;
  relation.kind = Relation::Kind::Subquery;
  relation.outputs = std::move(outputs.columns);
  relation.outputs_are_known = outputs.are_known;
  relation.is_transparent = outputs.is_transparent;
  apply_alias(relation, derived->alias);
  if (relation.has_column_aliases && !outputs.are_known) not_understood("column aliases");
  std::uint16_t index = add_relation(std::move(relation), scope);
  inside_[index] = {first, last};
  part.members = bit(index);
  return part;
}

// Stands among the relations as a subquery whose columns are not all known.
StatementReader::Part StatementReader::read_range_function(const PgQuery__RangeFunction* function) {
  Relation relation;
  relation.kind = Relation::Kind::Subquery;
  std::uint16_t scope = level_->scope;
  bool is_behind_where = std::exchange(level_->is_behind_where, false);
  level_->scope = add_view_of_scope(scope, ~RelationSet{0});  // functions in FROM are LATERAL by themselves
  for (const Node* item : LOKADB_NODES(function, functions)) {
    // A list of the call and its column definitions.
    if (!is_node(item, PG_QUERY__NODE__NODE_LIST) || item->list->n_items == 0) {
      not_understood("function in FROM");
      continue;
    }
    std::size_t position = out_.functions.size();
    const Node* call = item->list->items[0];
    expression(call);
    if (is_node(call, PG_QUERY__NODE__NODE_FUNC_CALL) && position < out_.functions.size()) {
      out_.functions[position].is_in_from = true;
      relation.name = relation.alias = out_.functions[position].name;
    } else if (is_node(call, PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION) && position < out_.functions.size()) {
      out_.functions[position].is_in_from = true;
      relation.name = relation.alias = out_.functions[position].name;
    } else {
      not_understood("function in FROM");  // COALESCE and other words
    }
    if (item->list->n_items > 1 && is_node(item->list->items[1], PG_QUERY__NODE__NODE_LIST))
      not_understood("column definitions of a function");
  }
  level_->scope = scope;
  level_->is_behind_where = is_behind_where;
  if (function->is_rowsfrom) not_understood("ROWS FROM");
  if (function->n_coldeflist > 0) {
    for (const Node* node : LOKADB_NODES(function, coldeflist)) {
      if (!is_node(node, PG_QUERY__NODE__NODE_COLUMN_DEF)) continue;
      relation.outputs.push_back({node->column_def->colname, std::nullopt});
      read_type(node->column_def->type_name);
    }
  }
  apply_alias(relation, function->alias);
  if (function->ordinality && !relation.has_column_aliases) relation.outputs.push_back({"ordinality", std::nullopt});
  // The one column of a function that gives no rows of several is called as the function is.
  if (!relation.has_column_aliases && function->n_coldeflist == 0)
    relation.outputs.push_back({relation.alias, std::nullopt});
  out_.scopes[scope].has_unknown_columns = true;
  Part part;
  part.members = bit(add_relation(std::move(relation), scope));
  return part;
}

void StatementReader::read_from_list(Nodes list) {
  for (const Node* node : list) {
    Part part = read_from(node);
    level_->members |= part.members;
    level_->nested |= part.nested;
    level_->conditions.insert(level_->conditions.end(), part.conditions.begin(), part.conditions.end());
  }
}

void StatementReader::read_where(const Node* where) {
  expression(where);
  conjuncts(where, level_->conditions);
}

}  // namespace lokadb::sql
