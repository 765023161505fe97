// SELECT: common table expressions, targets, grouping, set operations, locks.
#include <algorithm>
#include <utility>

#include "sql/reader.h"

namespace lokadb::sql {
namespace {

bool has_targets_alone(const PgQuery__SelectStmt* s) {
  return !s->with_clause && s->n_from_clause == 0 && !s->where_clause && s->n_group_clause == 0 && !s->having_clause &&
         s->n_window_clause == 0 && s->n_sort_clause == 0 && !s->limit_count && !s->limit_offset &&
         s->n_distinct_clause == 0 && s->n_locking_clause == 0 && !s->into_clause;
}

bool is_constant(const Node* node) { return is_node(node, PG_QUERY__NODE__NODE_A_CONST); }

}  // namespace

// WITH: returns how many tables were visible before, for end_with().
std::size_t StatementReader::read_with(const PgQuery__WithClause* with, std::uint16_t parent) {
  std::size_t before = common_tables_.size();
  if (!with) return before;
  if (with->recursive)
    for (const Node* node : LOKADB_NODES(with, ctes))
      if (is_node(node, PG_QUERY__NODE__NODE_COMMON_TABLE_EXPR))
        common_tables_.push_back({node->common_table_expr->ctename, {}, false, {}});
  std::size_t slot = before;
  for (const Node* node : LOKADB_NODES(with, ctes)) {
    if (!is_node(node, PG_QUERY__NODE__NODE_COMMON_TABLE_EXPR)) {
      not_understood("WITH");
      continue;
    }
    read_common_table(node->common_table_expr, parent, with->recursive ? slot : kNone);
    ++slot;
  }
  return before;
}

// `slot`: where it stands already among the visible ones (RECURSIVE), or kNone.
void StatementReader::read_common_table(const PgQuery__CommonTableExpr* table, std::uint16_t parent, std::size_t slot) {
  if (table->search_clause || table->cycle_clause) not_understood("SEARCH or CYCLE");
  Outputs outputs = read_statement_inside(table->ctequery, parent, Place::Derived);
  if (table->n_aliascolnames > 0 && !outputs.are_known) not_understood("column aliases");
  std::size_t i = 0;
  for (const Node* name : LOKADB_NODES(table, aliascolnames)) {
    if (i < outputs.columns.size()) outputs.columns[i].name = string_of(name);
    ++i;
  }
  if (slot == kNone) {
    common_tables_.push_back({table->ctename, std::move(outputs), true, {}});
    return;
  }
  CommonTable& stored = common_tables_[slot];
  // One that is read before it is finished is recursive, or looks ahead.
  if (!stored.mentions.empty()) outputs.is_transparent = false;
  stored.outputs = std::move(outputs);
  stored.is_finished = true;
}

// A condition on a table that is mentioned twice says nothing about its rows: the other mention may want them.
void StatementReader::end_with(std::size_t visible_before) {
  while (common_tables_.size() > visible_before) {
    const CommonTable& table = common_tables_.back();
    if (table.mentions.size() == 1) out_.relations[table.mentions[0]].is_transparent = table.outputs.is_transparent;
    common_tables_.pop_back();
  }
}

// A query of WITH, COPY, DECLARE ... Also those that change data.
StatementReader::Outputs StatementReader::read_statement_inside(const Node* node, std::uint16_t parent, Place place) {
  Outputs outputs;
  outputs.are_known = false;
  if (!node) return outputs;
  Level* level = std::exchange(level_, nullptr);
  auto how = std::exchange(how_, ColumnUse::How::Read);
  bool is_in_conflict = std::exchange(is_in_conflict_, false);
  if (is_node(node, PG_QUERY__NODE__NODE_SELECT_STMT)) {
    outputs = read_select(node->select_stmt, parent, place);
  } else {
    if (place != Place::Outermost) out_.modifies_in_with = true;
    if (is_node(node, PG_QUERY__NODE__NODE_INSERT_STMT))
      outputs = read_insert(node->insert_stmt, parent, place == Place::Outermost);
    else if (is_node(node, PG_QUERY__NODE__NODE_UPDATE_STMT))
      outputs = read_update(node->update_stmt, parent, place == Place::Outermost);
    else if (is_node(node, PG_QUERY__NODE__NODE_DELETE_STMT))
      outputs = read_delete(node->delete_stmt, parent, place == Place::Outermost);
    else
      not_understood(node_name(node));
  }
  level_ = level;
  how_ = how;
  is_in_conflict_ = is_in_conflict;
  return outputs;
}

StatementReader::Outputs StatementReader::read_select(const PgQuery__SelectStmt* select, std::uint16_t parent,
                                                      Place place, Subquery* subquery) {
  Outputs outputs;
  outputs.are_known = false;
  if (depth_ >= 400) {
    not_understood("deep nesting");
    return outputs;
  }
  ++depth_;
  std::size_t tables = read_with(select->with_clause, parent);
  if (select->op != PG_QUERY__SET_OPERATION__SETOP_NONE)
    outputs = read_set_operation(select, parent, place);
  else if (select->n_values_lists > 0)
    outputs = read_values(select, parent, place);
  else
    outputs = read_plain_select(select, parent, place, subquery);
  end_with(tables);
  --depth_;
  return outputs;
}

StatementReader::Outputs StatementReader::read_plain_select(const PgQuery__SelectStmt* select, std::uint16_t parent,
                                                            Place place, Subquery* subquery) {
  Level level;
  level.scope = add_scope(parent);
  Level* outer = std::exchange(level_, &level);
  read_from_list(LOKADB_NODES(select, from_clause));
  read_where(select->where_clause);
  RelationSet nested_in_where = level.nested;
  level.is_behind_where = true;
  auto how = std::exchange(how_, ColumnUse::How::Read);
  Outputs outputs = read_targets(LOKADB_NODES(select, target_list), how_, place == Place::Outermost);
  if (place == Place::Outermost && has_targets_alone(select))
    for (FunctionCall& call : out_.functions) call.runs_once = call.target != kNone;
  bool has_distinct = select->n_distinct_clause > 0;
  for (const Node* node : LOKADB_NODES(select, distinct_clause)) {
    if (is_constant(node) && !node->a_const->isnull) out_.depends_on_literals = true;
    expression(node);
  }
  read_group_by(LOKADB_NODES(select, group_clause), outputs.columns);
  expression(select->having_clause);
  for (const Node* node : LOKADB_NODES(select, window_clause)) {
    if (is_node(node, PG_QUERY__NODE__NODE_WINDOW_DEF))
      read_window(node->window_def);
    else
      not_understood("WINDOW");
  }
  read_order(LOKADB_NODES(select, sort_clause), outputs.columns);
  expression(select->limit_count);
  expression(select->limit_offset);
  bool has_limit = select->limit_count || select->limit_offset;
  bool is_grouped = select->n_group_clause > 0 || select->having_clause;
  if (has_limit) out_.has_limit = true;
  if (is_grouped) out_.has_aggregates = true;
  read_locking(LOKADB_NODES(select, locking_clause));
  if (select->into_clause) {
    out_.has_select_into = true;
    const PgQuery__RangeVar* into = select->into_clause->rel;
    if (into) out_.makes_temporary = out_.makes_temporary || std::string_view(into->relpersistence) == "t";
  }
  outputs.is_transparent =
      !has_distinct && !has_limit && !is_grouped && !level.has_window && select->n_locking_clause == 0;
  if (subquery) {
    subquery->row_implies_conditions = !is_grouped && !level.has_calls_behind_where && !level.has_window;
    subquery->conditions = level.conditions;
  }
  // Without GROUP BY an aggregate gives a row even if none passed WHERE: what stands beside it is computed all the
  // same.
  bool gives_row_without_rows = select->n_group_clause == 0 && (level.has_calls_behind_where || select->having_clause);
  RelationSet nested = level.nested;
  if (gives_row_without_rows) level.nested = nested_in_where;
  end_level(level);
  how_ = how;
  level_ = outer;
  if (outer && place == Place::Expression) outer->nested |= level.members | nested;
  return outputs;
}

StatementReader::Outputs StatementReader::read_set_operation(const PgQuery__SelectStmt* select, std::uint16_t parent,
                                                             Place place) {
  out_.has_set_operations = true;
  Place arm = place == Place::Expression ? place : Place::Derived;
  Outputs outputs;
  outputs.are_known = false;
  if (select->larg) outputs = read_select(select->larg, parent, arm);
  if (select->rarg) read_select(select->rarg, parent, arm);
  for (Relation::Output& output : outputs.columns) output.from.reset();
  outputs.is_transparent = false;
  // ORDER BY can only name output columns here, or count them.
  Level level;
  level.scope = add_scope(parent);
  Level* outer = std::exchange(level_, &level);
  for (const Node* node : LOKADB_NODES(select, sort_clause)) {
    const Node* key = is_node(node, PG_QUERY__NODE__NODE_SORT_BY) ? node->sort_by->node : nullptr;
    if (!is_node(key, PG_QUERY__NODE__NODE_COLUMN_REF) && !is_constant(key)) not_understood("ORDER BY of a union");
  }
  expression(select->limit_count);
  expression(select->limit_offset);
  level_ = outer;
  if (outer && place == Place::Expression) outer->nested |= level.nested;
  if (select->limit_count || select->limit_offset) out_.has_limit = true;
  if (select->n_locking_clause > 0) not_understood("locks on a union");
  return outputs;
}

StatementReader::Outputs StatementReader::read_values(const PgQuery__SelectStmt* select, std::uint16_t parent,
                                                      Place place) {
  Level level;
  level.scope = add_scope(parent);
  Level* outer = std::exchange(level_, &level);
  Outputs outputs;
  for (const Node* row : LOKADB_NODES(select, values_lists)) {
    if (!is_node(row, PG_QUERY__NODE__NODE_LIST)) {
      not_understood("VALUES");
      continue;
    }
    expressions(LOKADB_NODES(row->list, items));
    while (outputs.columns.size() < row->list->n_items)
      outputs.columns.push_back({"column" + std::to_string(outputs.columns.size() + 1), std::nullopt});
  }
  read_order(LOKADB_NODES(select, sort_clause), outputs.columns);
  expression(select->limit_count);
  expression(select->limit_offset);
  if (select->limit_count || select->limit_offset) out_.has_limit = true;
  if (select->n_locking_clause > 0) not_understood("locks on VALUES");
  level_ = outer;
  if (outer && place == Place::Expression) outer->nested |= level.nested;
  return outputs;
}

// As PostgreSQL names an output column that has no name of its own; "" where it does not matter.
std::string StatementReader::output_name(const Node* node) const {
  if (!node) return {};
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      return std::string(string_of(nodes(node->column_ref->fields, node->column_ref->n_fields).back()));
    case PG_QUERY__NODE__NODE_FUNC_CALL:
      return std::string(string_of(nodes(node->func_call->funcname, node->func_call->n_funcname).back()));
    case PG_QUERY__NODE__NODE_TYPE_CAST: {
      std::string name = output_name(node->type_cast->arg);
      if (!name.empty() || !node->type_cast->type_name || node->type_cast->type_name->n_names == 0) return name;
      const PgQuery__TypeName* type = node->type_cast->type_name;
      return std::string(string_of(type->names[type->n_names - 1]));
    }
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
      return output_name(node->collate_clause->arg);
    case PG_QUERY__NODE__NODE_A_INDIRECTION:
      return output_name(node->a_indirection->arg);
    case PG_QUERY__NODE__NODE_CASE_EXPR: {
      std::string name = output_name(node->case_expr->defresult);
      return name.empty() ? "case" : name;
    }
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
      return "coalesce";
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
      return "array";
    case PG_QUERY__NODE__NODE_ROW_EXPR:
      return "row";
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR:
      return node->min_max_expr->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST ? "greatest" : "least";
    case PG_QUERY__NODE__NODE_SUB_LINK: {
      if (node->sub_link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK) return "exists";
      if (node->sub_link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK) return "array";
      auto found = subqueries_.find(node->sub_link);
      bool has_one = found != subqueries_.end() && found->second.outputs.size() == 1;
      return has_one ? found->second.outputs[0].name : std::string();
    }
    default:
      return {};
  }
}

StatementReader::Outputs StatementReader::read_targets(Nodes list, ColumnUse::How how, bool is_outermost) {
  Outputs outputs;
  how_ = how;
  std::uint16_t position = 0;
  for (const Node* node : list) {
    if (!is_node(node, PG_QUERY__NODE__NODE_RES_TARGET) || !node->res_target->val) {
      not_understood("target");
      continue;
    }
    const Node* value = node->res_target->val;
    std::size_t calls = out_.functions.size();
    expression(value);
    if (is_outermost && is_node(value, PG_QUERY__NODE__NODE_FUNC_CALL) && calls < out_.functions.size())
      out_.functions[calls].target = position;
    ++position;
    bool is_star = is_node(value, PG_QUERY__NODE__NODE_COLUMN_REF) &&
                   is_node(value->column_ref->fields[value->column_ref->n_fields - 1], PG_QUERY__NODE__NODE_A_STAR);
    if (!is_star) {
      std::string name = node->res_target->name;
      if (name.empty()) name = output_name(value);
      outputs.columns.push_back({std::move(name), column_of(value)});
      continue;
    }
    Nodes fields = LOKADB_NODES(value->column_ref, fields);
    std::optional<std::uint16_t> one;
    if (fields.size() > 1) one = find_alias(level_->scope, {}, string_of(fields[fields.size() - 2]));
    std::vector<std::uint16_t> expanded;
    if (fields.size() == 1) expanded = out_.scopes[level_->scope].relations;
    if (one) expanded = {*one};
    // USING lets * give a column once; the names alone do not tell which.
    bool is_merged = std::any_of(merged_.begin(), merged_.end(),
                                 [this](const Merged& merged) { return merged.scope == scope_owners_[level_->scope]; });
    if (expanded.empty() || (fields.size() == 1 && is_merged)) outputs.are_known = false;
    for (std::uint16_t index : expanded) {
      const Relation& relation = out_.relations[index];
      if (relation.outputs_are_known) {
        for (const Relation::Output& output : relation.outputs)
          outputs.columns.push_back({output.name, Column{index, relation.scope, output.name}});
      } else {
        outputs.are_known = false;
        outputs.columns.push_back({"*", Column{index, relation.scope, "*"}});
      }
    }
  }
  how_ = ColumnUse::How::Read;
  return outputs;
}

void StatementReader::read_group_by(Nodes list, const std::vector<Relation::Output>& outputs) {
  for (const Node* node : list) {
    if (is_node(node, PG_QUERY__NODE__NODE_GROUPING_SET)) {
      not_understood("GROUPING SETS");
      out_.group_by_other = true;
      continue;
    }
    if (is_constant(node)) out_.depends_on_literals = true;  // the number of an output column
    auto column = column_of(node);
    if (!column) {
      out_.group_by_other = true;
      expression(node);
      continue;
    }
    // A name is a column first, an output's name second.
    bool is_bare = node->column_ref->n_fields == 1;
    bool may_be_output = is_bare && std::any_of(outputs.begin(), outputs.end(), [&column](const auto& output) {
                           return output.name == column->name && (!output.from || output.from->name != column->name);
                         });
    if (may_be_output)
      out_.group_by_other = true;
    else
      out_.group_by.push_back(*column);
    use_column(*column, how_, may_be_output);
  }
}

void StatementReader::lock_rows(std::uint16_t index) {
  out_.relations[index].is_row_locked = true;
  auto found = inside_.find(index);
  if (found == inside_.end()) return;
  for (std::uint16_t i = found->second.first; i < found->second.second; ++i) out_.relations[i].is_row_locked = true;
}

void StatementReader::read_locking(Nodes list) {
  for (const Node* node : list) {
    if (!is_node(node, PG_QUERY__NODE__NODE_LOCKING_CLAUSE)) {
      not_understood("FOR UPDATE");
      continue;
    }
    const PgQuery__LockingClause* clause = node->locking_clause;
    out_.has_row_locks = true;
    if (clause->wait_policy == PG_QUERY__LOCK_WAIT_POLICY__LockWaitSkip) out_.has_skip_locked = true;
    if (clause->wait_policy == PG_QUERY__LOCK_WAIT_POLICY__LockWaitError) out_.has_nowait = true;
    const std::vector<std::uint16_t> all = out_.scopes[level_->scope].relations;
    if (clause->n_locked_rels == 0)
      for (std::uint16_t index : all) lock_rows(index);
    for (const Node* name : LOKADB_NODES(clause, locked_rels)) {
      bool is_found = false;
      for (std::uint16_t index : all) {
        if (!is_node(name, PG_QUERY__NODE__NODE_RANGE_VAR) || out_.relations[index].alias != name->range_var->relname)
          continue;
        lock_rows(index);
        is_found = true;
      }
      if (!is_found) not_understood("FOR UPDATE OF");
    }
  }
}

}  // namespace lokadb::sql
