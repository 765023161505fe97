// Expressions: every node type that is understood has a case here.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sql/reader.h"

namespace lokadb::sql {
namespace {

constexpr int kMaxDepth = 400;  // of expressions and subqueries in each other; a level of ours takes some stack

void add_once(std::vector<std::string>& list, std::string name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
}

}  // namespace

void StatementReader::expressions(Nodes list) {
  for (const Node* node : list) expression(node);
}

void StatementReader::expression(const Node* node) {
  if (!node) return;
  if (depth_ >= kMaxDepth) return not_understood("deep nesting");
  ++depth_;
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE__NOT_SET:
    case PG_QUERY__NODE__NODE_A_CONST:
    case PG_QUERY__NODE__NODE_SET_TO_DEFAULT:
      break;
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      read_column_ref(node->column_ref);
      break;
    case PG_QUERY__NODE__NODE_PARAM_REF:
      if (node->param_ref->number <= 0 || node->param_ref->number >= kNone)
        not_understood("parameter number");
      else
        out_.parameter_count = std::max(out_.parameter_count, static_cast<std::uint16_t>(node->param_ref->number));
      break;
    case PG_QUERY__NODE__NODE_A_EXPR:
      read_operator(node->a_expr);
      break;
    case PG_QUERY__NODE__NODE_BOOL_EXPR:
      expressions(LOKADB_NODES(node->bool_expr, args));
      break;
    case PG_QUERY__NODE__NODE_FUNC_CALL:
      read_call(node->func_call);
      break;
    case PG_QUERY__NODE__NODE_SUB_LINK:
      read_sublink(node->sub_link);
      break;
    case PG_QUERY__NODE__NODE_TYPE_CAST:
      expression(node->type_cast->arg);
      read_type(node->type_cast->type_name);
      break;
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
      expression(node->collate_clause->arg);
      add_once(out_.collations, joined_name(LOKADB_NODES(node->collate_clause, collname)));
      break;
    case PG_QUERY__NODE__NODE_CASE_EXPR:
      expression(node->case_expr->arg);
      expressions(LOKADB_NODES(node->case_expr, args));
      expression(node->case_expr->defresult);
      if (node->case_expr->arg) add_once(out_.operators, "=");
      break;
    case PG_QUERY__NODE__NODE_CASE_WHEN:
      expression(node->case_when->expr);
      expression(node->case_when->result);
      break;
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
      expressions(LOKADB_NODES(node->coalesce_expr, args));
      break;
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR:
      expressions(LOKADB_NODES(node->min_max_expr, args));
      break;
    case PG_QUERY__NODE__NODE_NULL_TEST:
      expression(node->null_test->arg);
      break;
    case PG_QUERY__NODE__NODE_BOOLEAN_TEST:
      expression(node->boolean_test->arg);
      break;
    case PG_QUERY__NODE__NODE_ROW_EXPR:
      expressions(LOKADB_NODES(node->row_expr, args));
      break;
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
      expressions(LOKADB_NODES(node->a_array_expr, elements));
      break;
    case PG_QUERY__NODE__NODE_LIST:
      expressions(LOKADB_NODES(node->list, items));
      break;
    case PG_QUERY__NODE__NODE_NAMED_ARG_EXPR:
      expression(node->named_arg_expr->arg);
      break;
    case PG_QUERY__NODE__NODE_A_INDIRECTION:
      expression(node->a_indirection->arg);
      for (const Node* part : LOKADB_NODES(node->a_indirection, indirection)) {
        if (!is_node(part, PG_QUERY__NODE__NODE_A_INDICES)) {
          not_understood("field of an expression");  // or a function call in disguise
          continue;
        }
        expression(part->a_indices->lidx);
        expression(part->a_indices->uidx);
      }
      break;
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
      read_value_function(node->sqlvalue_function);
      break;
    case PG_QUERY__NODE__NODE_CURRENT_OF_EXPR:
      out_.has_current_of = true;
      break;
    default:
      not_understood(node_name(node));
  }
  --depth_;
}

void StatementReader::note_operator(Nodes name) {
  if (name.size() > 0) add_once(out_.operators, joined_name(name));
}

void StatementReader::read_operator(const PgQuery__AExpr* expr) {
  expression(expr->lexpr);
  expression(expr->rexpr);
  switch (expr->kind) {
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP:
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ANY:
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ALL:
    case PG_QUERY__A__EXPR__KIND__AEXPR_DISTINCT:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NULLIF:
    case PG_QUERY__A__EXPR__KIND__AEXPR_IN:
    case PG_QUERY__A__EXPR__KIND__AEXPR_LIKE:
    case PG_QUERY__A__EXPR__KIND__AEXPR_ILIKE:
    case PG_QUERY__A__EXPR__KIND__AEXPR_SIMILAR:
      return note_operator(LOKADB_NODES(expr, name));
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN:
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN_SYM:
      add_once(out_.operators, ">=");
      return add_once(out_.operators, "<=");
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN:
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN_SYM:
      add_once(out_.operators, "<");
      return add_once(out_.operators, ">");
    default:
      return not_understood("operator expression");
  }
}

namespace {

// d.* where it is one value.
bool is_row(const Node* node) {
  if (!is_node(node, PG_QUERY__NODE__NODE_COLUMN_REF)) return false;
  Nodes fields = LOKADB_NODES(node->column_ref, fields);
  return !fields.empty() && is_node(fields.back(), PG_QUERY__NODE__NODE_A_STAR);
}

}  // namespace

void StatementReader::read_call(const PgQuery__FuncCall* call) {
  if (level_ && level_->is_behind_where) level_->has_calls_behind_where = true;
  Nodes name = LOKADB_NODES(call, funcname);
  FunctionCall function;
  if (!name.empty()) function.name = string_of(name.back());
  if (name.size() == 2) function.schema = string_of(name.front());
  if (name.size() > 2) not_understood("function of a named database");
  for (const Node* argument : LOKADB_NODES(call, args)) {
    function.arguments.push_back(value_of(argument));
    if (is_row(argument)) not_understood("a row as an argument");
  }
  function.is_aggregate_syntax =
      call->agg_star || call->agg_distinct || call->agg_within_group || call->agg_filter || call->n_agg_order > 0;
  function.has_over = call->over != nullptr;
  if (function.is_aggregate_syntax && !function.has_over) out_.has_aggregates = true;
  out_.functions.push_back(std::move(function));
  ++calls_;
  expressions(LOKADB_NODES(call, args));
  read_order(LOKADB_NODES(call, agg_order), {});
  expression(call->agg_filter);
  --calls_;
  if (call->over) read_window(call->over);
}

void StatementReader::read_window(const PgQuery__WindowDef* window) {
  if (level_) level_->has_window = true;
  expressions(LOKADB_NODES(window, partition_clause));
  read_order(LOKADB_NODES(window, order_clause), {});
  expression(window->start_offset);
  expression(window->end_offset);
}

void StatementReader::read_type(const PgQuery__TypeName* type) {
  if (!type || type->location < 0) return;  // that of the word TRUE
  if (type->setof || type->pct_type) return not_understood("type of a column");
  add_once(out_.types, type_name(type));
  expressions(LOKADB_NODES(type, typmods));
  // float(n) is one type or another.
  std::string_view written =
      text_.substr(std::min<std::size_t>(static_cast<std::size_t>(type->location), text_.size()));
  if (iequals(written.substr(0, 5), "float") && written.size() > 5 && lower(written[5]) != '4' && written[5] != '8') {
    Lexer lexer(written);
    lexer.next();
    Token token = lexer.next();
    while (token.kind == TokenKind::Comment) token = lexer.next();
    if (written[token.start] == '(') out_.depends_on_literals = true;
  }
}

// ORDER BY name means an output column if there is one of that name, and that was read with the targets.
void StatementReader::read_order(Nodes list, const std::vector<Relation::Output>& outputs) {
  for (const Node* node : list) {
    if (!is_node(node, PG_QUERY__NODE__NODE_SORT_BY)) {
      not_understood("ORDER BY");
      continue;
    }
    const PgQuery__SortBy* sort = node->sort_by;
    note_operator(LOKADB_NODES(sort, use_op));
    bool is_output = false;
    if (is_node(sort->node, PG_QUERY__NODE__NODE_COLUMN_REF) && sort->node->column_ref->n_fields == 1) {
      std::string_view name = string_of(sort->node->column_ref->fields[0]);
      is_output = std::any_of(outputs.begin(), outputs.end(), [name](const auto& o) { return o.name == name; });
    }
    if (!is_output) expression(sort->node);
  }
}

void StatementReader::read_value_function(const PgQuery__SQLValueFunction* function) {
  static constexpr std::string_view kNames[] = {
      "",          "current_date", "current_time",    "current_time",   "current_timestamp", "current_timestamp",
      "localtime", "localtime",    "localtimestamp",  "localtimestamp", "current_role",      "current_user",
      "user",      "session_user", "current_catalog", "current_schema",
  };
  auto op = static_cast<std::size_t>(function->op);
  if (op == 0 || op >= std::size(kNames)) return not_understood("SQL value function");
  FunctionCall call;
  call.schema = "pg_catalog";  // which has no functions of these names, so these are the words
  call.name = kNames[op];
  out_.functions.push_back(std::move(call));
}

void StatementReader::read_sublink(const PgQuery__SubLink* link) {
  out_.has_subqueries = true;
  if (level_ && level_->is_behind_where) level_->has_calls_behind_where = true;  // of its aggregates some may be ours
  expression(link->testexpr);
  switch (link->sub_link_type) {
    case PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK:
    case PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK:
    case PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK:
      break;
    case PG_QUERY__SUB_LINK_TYPE__ALL_SUBLINK:
    case PG_QUERY__SUB_LINK_TYPE__ANY_SUBLINK:
      if (link->n_oper_name == 0)
        add_once(out_.operators, "=");
      else
        note_operator(LOKADB_NODES(link, oper_name));
      break;
    default:
      return not_understood("kind of subquery");
  }
  if (!is_node(link->subselect, PG_QUERY__NODE__NODE_SELECT_STMT)) return not_understood("subquery");
  auto how = std::exchange(how_, ColumnUse::How::Read);
  const PgQuery__SelectStmt* select = link->subselect->select_stmt;
  Subquery& facts = subqueries_[link];
  std::uint16_t parent = level_ ? level_->scope : kNone;
  Outputs outputs = read_select(select, parent, Place::Expression, &facts);
  facts.outputs = std::move(outputs.columns);
  facts.is_transparent = outputs.is_transparent;
  how_ = how;
}

}  // namespace lokadb::sql
