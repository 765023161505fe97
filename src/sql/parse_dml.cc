// INSERT, UPDATE, DELETE, and as much of MERGE as it takes to name its relations.
#include <utility>

#include "sql/reader.h"

namespace lokadb::sql {
namespace {

constexpr RelationSet bit(std::size_t relation) { return RelationSet{1} << relation; }

bool is_plain(const PgQuery__SelectStmt* select) {
  return select->op == PG_QUERY__SET_OPERATION__SETOP_NONE && !select->where_clause && !select->having_clause &&
         !select->limit_count && !select->limit_offset && !select->with_clause && !select->into_clause &&
         select->n_distinct_clause + select->n_group_clause + select->n_window_clause + select->n_sort_clause +
                 select->n_locking_clause + select->n_values_lists ==
             0;
}

bool is_target_of(const Node* target, std::string_view alias, std::string_view column) {
  if (!is_node(target, PG_QUERY__NODE__NODE_RES_TARGET)) return false;
  const Node* value = target->res_target->val;
  if (!is_node(value, PG_QUERY__NODE__NODE_COLUMN_REF)) return false;
  Nodes fields = LOKADB_NODES(value->column_ref, fields);
  if (fields.size() == 2 && string_of(fields[0]) != alias) return false;
  return fields.size() <= 2 && string_of(fields.back()) == column;
}

}  // namespace

StatementReader::Outputs StatementReader::read_returning(Nodes list) {
  if (list.empty()) return {};
  out_.has_returning = true;
  level_->is_behind_where = true;
  Outputs outputs = read_targets(list, ColumnUse::How::Returned, false);
  outputs.is_transparent = false;
  return outputs;
}

StatementReader::Outputs StatementReader::read_insert(const PgQuery__InsertStmt* insert, std::uint16_t parent,
                                                      bool is_main) {
  std::size_t tables = read_with(insert->with_clause, parent);
  Level level;
  level.scope = add_scope(parent);
  level_ = &level;
  std::uint16_t target = read_range_var(insert->relation, level.scope, Use::Insert);
  level.members = bit(target);
  Insertion insertion;
  if (insert->override == PG_QUERY__OVERRIDING_KIND__OVERRIDING_USER_VALUE)
    insertion.overriding = Insertion::Overriding::User;
  if (insert->override == PG_QUERY__OVERRIDING_KIND__OVERRIDING_SYSTEM_VALUE)
    insertion.overriding = Insertion::Overriding::System;
  for (const Node* node : LOKADB_NODES(insert, cols)) {
    if (!is_node(node, PG_QUERY__NODE__NODE_RES_TARGET) || node->res_target->n_indirection > 0) {
      not_understood("part of a column");
      continue;
    }
    insertion.columns.push_back(node->res_target->name);
    use_column({target, level.scope, node->res_target->name}, ColumnUse::How::Inserted);
  }
  if (insertion.columns.empty()) use_column({target, level.scope, "*"}, ColumnUse::How::Inserted);
  read_insert_source(insert, insertion, parent);
  std::vector<Assignment> assignments;
  if (insert->on_conflict_clause) assignments = read_conflict(insert->on_conflict_clause, target, insertion);
  Outputs outputs = read_returning(LOKADB_NODES(insert, returning_list));
  end_level(level);
  level_ = nullptr;
  end_with(tables);
  if (is_main) {
    out_.insertion = std::move(insertion);
    out_.assignments = std::move(assignments);
  }
  return outputs;
}

void StatementReader::read_insert_source(const PgQuery__InsertStmt* insert, Insertion& insertion,
                                         std::uint16_t parent) {
  if (!insert->select_stmt) {
    insertion.source = Insertion::Source::DefaultValues;
    return;
  }
  if (!is_node(insert->select_stmt, PG_QUERY__NODE__NODE_SELECT_STMT)) return not_understood("source of INSERT");
  const PgQuery__SelectStmt* select = insert->select_stmt->select_stmt;
  Level* level = level_;
  if (select->n_values_lists > 0 && !select->with_clause && select->n_sort_clause == 0 && !select->limit_count &&
      !select->limit_offset) {
    // Its expressions see nothing of the table.
    Level values;
    values.scope = add_scope(parent);
    level_ = &values;
    for (const Node* row : LOKADB_NODES(select, values_lists)) {
      if (!is_node(row, PG_QUERY__NODE__NODE_LIST)) {
        not_understood("VALUES");
        continue;
      }
      std::vector<Value> read;
      for (const Node* node : LOKADB_NODES(row->list, items)) {
        expression(node);
        read.push_back(value_of(node));
      }
      insertion.rows.push_back(std::move(read));
    }
    level->nested |= values.nested;
  } else {
    insertion.source = read_unnest(select, insertion) ? Insertion::Source::Unnest : Insertion::Source::Select;
    level_ = nullptr;
    Outputs outputs = read_select(select, parent, Place::Derived);
    std::size_t i = 0;
    for (const Relation::Output& output : outputs.columns) {
      Equality::Side side;
      side.column = output.from;
      // As long as nothing was expanded the targets stand as they were written.
      bool is_written = outputs.columns.size() == select->n_target_list;
      if (!side.column && is_written && is_node(select->target_list[i], PG_QUERY__NODE__NODE_RES_TARGET))
        side.value = value_of(select->target_list[i]->res_target->val);
      insertion.selected.push_back(std::move(side));
      ++i;
    }
  }
  level_ = level;
}

// SELECT * FROM unnest(a, b), or with the columns named and given in the same order.
bool StatementReader::read_unnest(const PgQuery__SelectStmt* select, Insertion& insertion) const {
  if (!is_plain(select) || select->n_from_clause != 1 ||
      !is_node(select->from_clause[0], PG_QUERY__NODE__NODE_RANGE_FUNCTION))
    return false;
  const PgQuery__RangeFunction* function = select->from_clause[0]->range_function;
  if (function->ordinality || function->is_rowsfrom || function->n_functions != 1 || function->n_coldeflist > 0 ||
      !is_node(function->functions[0], PG_QUERY__NODE__NODE_LIST) || function->functions[0]->list->n_items == 0 ||
      !is_node(function->functions[0]->list->items[0], PG_QUERY__NODE__NODE_FUNC_CALL))
    return false;
  const PgQuery__FuncCall* call = function->functions[0]->list->items[0]->func_call;
  Nodes arguments = LOKADB_NODES(call, args);
  if (joined_name(LOKADB_NODES(call, funcname)) != "unnest" || call->func_variadic || arguments.empty()) return false;
  Nodes targets = LOKADB_NODES(select, target_list);
  bool is_star = targets.size() == 1 && is_node(targets[0], PG_QUERY__NODE__NODE_RES_TARGET) &&
                 is_node(targets[0]->res_target->val, PG_QUERY__NODE__NODE_COLUMN_REF) &&
                 targets[0]->res_target->val->column_ref->n_fields == 1 &&
                 is_node(targets[0]->res_target->val->column_ref->fields[0], PG_QUERY__NODE__NODE_A_STAR);
  if (!is_star) {
    if (!function->alias || function->alias->n_colnames != arguments.size() || targets.size() != arguments.size())
      return false;
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (!is_target_of(targets[i], function->alias->aliasname, string_of(function->alias->colnames[i]))) return false;
  }
  for (const Node* argument : arguments) insertion.arrays.push_back(value_of(argument));
  return true;
}

void StatementReader::read_infer(const PgQuery__InferClause* infer, Insertion& insertion) {
  if (infer->conname) insertion.conflict_constraint = infer->conname;
  for (const Node* node : LOKADB_NODES(infer, index_elems)) {
    if (!is_node(node, PG_QUERY__NODE__NODE_INDEX_ELEM)) {
      not_understood("ON CONFLICT");
      continue;
    }
    const PgQuery__IndexElem* element = node->index_elem;
    if (element->expr || element->n_collation > 0 || element->n_opclass > 0 || element->n_opclassopts > 0)
      insertion.conflict_is_plain = false;
    expression(element->expr);
    if (*element->name) {
      insertion.conflict_columns.push_back(element->name);
      use_column(resolve(level_->scope, element->name), ColumnUse::How::Read);
    }
  }
  if (infer->where_clause) insertion.conflict_is_plain = false;
  expression(infer->where_clause);
}

std::vector<Assignment> StatementReader::read_conflict(const PgQuery__OnConflictClause* clause, std::uint16_t target,
                                                       Insertion& insertion) {
  std::vector<Assignment> assignments;
  is_in_conflict_ = true;
  if (clause->infer) read_infer(clause->infer, insertion);
  if (clause->action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_NOTHING) {
    insertion.conflict = Insertion::Conflict::DoNothing;
  } else if (clause->action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_UPDATE) {
    insertion.conflict = Insertion::Conflict::DoUpdate;
    assignments = read_assignments(LOKADB_NODES(clause, target_list), target);
    expression(clause->where_clause);
  } else {
    not_understood("ON CONFLICT");
  }
  is_in_conflict_ = false;
  return assignments;
}

std::vector<Assignment> StatementReader::read_assignments(Nodes list, std::uint16_t target) {
  std::vector<Assignment> assignments;
  for (const Node* node : list) {
    if (!is_node(node, PG_QUERY__NODE__NODE_RES_TARGET)) {
      not_understood("SET");
      continue;
    }
    Assignment assignment;
    assignment.column = node->res_target->name;
    if (node->res_target->n_indirection > 0) not_understood("part of a column");
    use_column({target, out_.relations[target].scope, assignment.column}, ColumnUse::How::Updated);
    const Node* value = node->res_target->val;
    if (is_node(value, PG_QUERY__NODE__NODE_MULTI_ASSIGN_REF)) {  // (a, b) = ROW (1, 2), or a subquery
      const PgQuery__MultiAssignRef* part = value->multi_assign_ref;
      if (part->colno == 1) expression(part->source);
      value = nullptr;
      if (is_node(part->source, PG_QUERY__NODE__NODE_ROW_EXPR)) {
        Nodes args = LOKADB_NODES(part->source->row_expr, args);
        if (part->colno >= 1 && static_cast<std::size_t>(part->colno) <= args.size())
          value = args[static_cast<std::size_t>(part->colno) - 1];
      }
    } else {
      expression(value);
    }
    assignment.value = value_of(value);
    auto column = column_of(value);
    assignment.is_own_value = column && column->relation == target && column->name == assignment.column;
    if (is_in_conflict_ && is_node(value, PG_QUERY__NODE__NODE_COLUMN_REF)) {
      Nodes fields = LOKADB_NODES(value->column_ref, fields);
      if (fields.size() == 2 && string_of(fields[0]) == "excluded" && string_of(fields[1]) == assignment.column)
        assignment.is_own_value = true;
    }
    assignments.push_back(std::move(assignment));
  }
  return assignments;
}

StatementReader::Outputs StatementReader::read_update(const PgQuery__UpdateStmt* update, std::uint16_t parent,
                                                      bool is_main) {
  std::size_t tables = read_with(update->with_clause, parent);
  Level level;
  level.scope = add_scope(parent);
  level_ = &level;
  std::uint16_t target = read_range_var(update->relation, level.scope, Use::Update);
  level.members = bit(target);
  read_from_list(LOKADB_NODES(update, from_clause));
  auto assignments = read_assignments(LOKADB_NODES(update, target_list), target);
  if (is_main) out_.assignments = std::move(assignments);
  read_where(update->where_clause);
  Outputs outputs = read_returning(LOKADB_NODES(update, returning_list));
  end_level(level);
  level_ = nullptr;
  end_with(tables);
  return outputs;
}

StatementReader::Outputs StatementReader::read_delete(const PgQuery__DeleteStmt* statement, std::uint16_t parent,
                                                      bool) {
  std::size_t tables = read_with(statement->with_clause, parent);
  Level level;
  level.scope = add_scope(parent);
  level_ = &level;
  level.members = bit(read_range_var(statement->relation, level.scope, Use::Delete));
  read_from_list(LOKADB_NODES(statement, using_clause));
  read_where(statement->where_clause);
  Outputs outputs = read_returning(LOKADB_NODES(statement, returning_list));
  end_level(level);
  level_ = nullptr;
  end_with(tables);
  return outputs;
}

void StatementReader::read_merge(const PgQuery__MergeStmt* merge, std::uint16_t parent) {
  not_understood("MERGE");
  std::size_t tables = read_with(merge->with_clause, parent);
  Level level;
  level.scope = add_scope(parent);
  level_ = &level;
  level.members = bit(read_range_var(merge->relation, level.scope, Use::Merge));
  Part source = read_from(merge->source_relation);
  expression(merge->join_condition);
  level_ = nullptr;
  end_with(tables);
}

}  // namespace lokadb::sql
