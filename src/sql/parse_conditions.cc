// Conditions that must be true: equalities and memberships under AND alone.
#include "sql/reader.h"

namespace lokadb::sql {
namespace {

bool is_equals(Nodes name) {
  if (name.size() == 2 && string_of(name[0]) == "pg_catalog") name = name.subspan(1);
  return name.size() == 1 && string_of(name[0]) == "=";
}

bool is_useful(const Equality::Side& side) {
  return side.column || (side.value.kind != Value::Kind::Other && side.value.kind != Value::Kind::Default);
}

}  // namespace

void StatementReader::conjuncts(const Node* node, Conditions& conditions) {
  if (!node) return;
  if (is_node(node, PG_QUERY__NODE__NODE_BOOL_EXPR)) {
    if (node->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR) return;
    for (const Node* argument : LOKADB_NODES(node->bool_expr, args)) conjuncts(argument, conditions);
  } else if (is_node(node, PG_QUERY__NODE__NODE_SUB_LINK)) {
    conjunct_sublink(node->sub_link, conditions);
  } else if (is_node(node, PG_QUERY__NODE__NODE_A_EXPR) && is_equals(LOKADB_NODES(node->a_expr, name))) {
    const PgQuery__AExpr* expr = node->a_expr;
    if (expr->kind == PG_QUERY__A__EXPR__KIND__AEXPR_OP) equality(expr->lexpr, expr->rexpr, conditions);
    if (expr->kind == PG_QUERY__A__EXPR__KIND__AEXPR_IN || expr->kind == PG_QUERY__A__EXPR__KIND__AEXPR_OP_ANY)
      membership(expr, conditions);
  }
}

void StatementReader::equality(const Node* left, const Node* right, Conditions& conditions) {
  if (is_node(left, PG_QUERY__NODE__NODE_ROW_EXPR) && is_node(right, PG_QUERY__NODE__NODE_ROW_EXPR)) {
    Nodes lefts = LOKADB_NODES(left->row_expr, args), rights = LOKADB_NODES(right->row_expr, args);
    if (lefts.size() != rights.size()) return;
    for (std::size_t i = 0; i < lefts.size(); ++i) equality(lefts[i], rights[i], conditions);
    return;
  }
  add_equality(side_of(left), side_of(right), conditions);
}

void StatementReader::add_equality(Equality::Side left, Equality::Side right, Conditions& conditions) {
  if (!is_useful(left) || !is_useful(right) || (!left.column && !right.column)) return;
  conditions.push_back({false, out_.equalities.size()});
  out_.equalities.push_back({std::move(left), std::move(right), 0});
}

void StatementReader::membership(const PgQuery__AExpr* expr, Conditions& conditions) {
  auto column = column_of(expr->lexpr);
  if (!column || !expr->rexpr) return;
  Membership membership;
  membership.column = std::move(*column);
  const Node* right = expr->rexpr;
  std::string element_cast;
  if (is_node(right, PG_QUERY__NODE__NODE_TYPE_CAST) &&
      is_node(right->type_cast->arg, PG_QUERY__NODE__NODE_A_ARRAY_EXPR) && right->type_cast->type_name &&
      right->type_cast->type_name->n_typmods == 0) {
    element_cast = joined_name(LOKADB_NODES(right->type_cast->type_name, names));
    right = right->type_cast->arg;
  }
  Nodes values;
  if (is_node(right, PG_QUERY__NODE__NODE_LIST)) values = LOKADB_NODES(right->list, items);
  if (is_node(right, PG_QUERY__NODE__NODE_A_ARRAY_EXPR)) values = LOKADB_NODES(right->a_array_expr, elements);
  for (const Node* node : values) {
    Value value = value_of(node);
    if (!element_cast.empty() && value.kind != Value::Kind::Other) {
      if (value.cast.empty())
        value.cast = element_cast;
      else if (value.cast != element_cast)
        value = Value();
    }
    membership.values.push_back(std::move(value));
  }
  if (values.empty()) {
    Value array = value_of(right);
    if (array.kind == Value::Kind::Other) return;
    membership.array = std::move(array);
  }
  conditions.push_back({true, out_.memberships.size()});
  out_.memberships.push_back(std::move(membership));
}

// EXISTS (...) and x IN (SELECT ...): a row counts only if some row inside meets the conditions there; and for IN, if
// its column equals that row's. A row inside in turn counts only if it equals x, unless something such as LIMIT makes
// rows matter that do not come out.
void StatementReader::conjunct_sublink(const PgQuery__SubLink* link, Conditions& conditions) {
  auto found = subqueries_.find(link);
  if (found == subqueries_.end() || !found->second.row_implies_conditions) return;
  const Subquery& inside = found->second;
  if (link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK) {
    conditions.insert(conditions.end(), inside.conditions.begin(), inside.conditions.end());
    return;
  }
  bool is_in = link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__ANY_SUBLINK &&
               (link->n_oper_name == 0 || is_equals(LOKADB_NODES(link, oper_name)));
  if (!is_in || !inside.is_transparent) return;
  conditions.insert(conditions.end(), inside.conditions.begin(), inside.conditions.end());
  std::vector<const Node*> tests{link->testexpr};
  if (is_node(link->testexpr, PG_QUERY__NODE__NODE_ROW_EXPR)) {
    Nodes args = LOKADB_NODES(link->testexpr->row_expr, args);
    tests.assign(args.begin(), args.end());
  }
  if (tests.size() != inside.outputs.size()) return;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (!inside.outputs[i].from || inside.outputs[i].from->name == "*") continue;
    Equality::Side output;
    output.column = inside.outputs[i].from;
    add_equality(side_of(tests[i]), std::move(output), conditions);
  }
}

void StatementReader::settle(const Conditions& conditions, RelationSet holds_for) {
  for (Condition condition : conditions) {
    if (condition.is_membership)
      out_.memberships[condition.index].holds_for |= holds_for;
    else
      out_.equalities[condition.index].holds_for |= holds_for;
  }
}

void StatementReader::end_level(Level& level) { settle(level.conditions, level.members | level.nested); }

}  // namespace lokadb::sql
