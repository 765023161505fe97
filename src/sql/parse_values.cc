// Values: literals by their number, parameters, casts.
#include <algorithm>

#include "sql/reader.h"

namespace lokadb::sql {
namespace {

bool is_integer_type(std::string_view type) { return type == "int2" || type == "int4" || type == "int8"; }

}  // namespace

// libpg_query tells where a constant begins: at its literal, or at the minus in front of it.
Value StatementReader::constant(const PgQuery__AConst* constant) const {
  Value value;
  if (constant->isnull) {
    value.kind = Value::Kind::Null;
    return value;
  }
  if (constant->val_case == PG_QUERY__A__CONST__VAL_BOOLVAL) {
    value.kind = Value::Kind::Boolean;
    value.index = constant->boolval->boolval ? 1 : 0;
    return value;
  }
  if (constant->location < 0) return value;
  auto location = static_cast<std::uint32_t>(constant->location);
  auto literal = std::lower_bound(literals_.begin(), literals_.end(), location,
                                  [](const Token& token, std::uint32_t at) { return token.start < at; });
  if (literal == literals_.end() || literal - literals_.begin() >= kNone) return value;
  if (literal->start != location) {
    Lexer between(text_.substr(location, literal->start - location));
    for (Token token = between.next(); token.kind != TokenKind::End; token = between.next()) {
      if (token.kind == TokenKind::Comment) continue;
      char c = text_[location + token.start];
      if (token.end - token.start != 1 || (c != '-' && c != '(')) return value;
      if (c == '-') value.is_negated = !value.is_negated;
    }
  }
  value.kind = Value::Kind::Literal;
  value.index = static_cast<std::uint16_t>(literal - literals_.begin());
  return value;
}

std::string StatementReader::type_name(const PgQuery__TypeName* type) const {
  std::string name = joined_name(LOKADB_NODES(type, names));
  if (type->n_array_bounds > 0) name += "[]";
  return name;
}

Value StatementReader::value_of(const Node* node) const {
  if (!node) return {};
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST:
      return constant(node->a_const);
    case PG_QUERY__NODE__NODE_SET_TO_DEFAULT: {
      Value value;
      value.kind = Value::Kind::Default;
      return value;
    }
    case PG_QUERY__NODE__NODE_PARAM_REF: {
      Value value;
      if (node->param_ref->number <= 0 || node->param_ref->number >= kNone) return value;
      value.kind = Value::Kind::Parameter;
      value.index = static_cast<std::uint16_t>(node->param_ref->number);
      return value;
    }
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE: {
      // By this one equal means equal bytes, so the value is itself.
      bool is_c = joined_name(LOKADB_NODES(node->collate_clause, collname)) == "C";
      return is_c ? value_of(node->collate_clause->arg) : Value();
    }
    case PG_QUERY__NODE__NODE_TYPE_CAST: {
      const PgQuery__TypeName* type = node->type_cast->type_name;
      Value value = value_of(node->type_cast->arg);
      if (value.kind == Value::Kind::Boolean && node->type_cast->location < 0) return value;  // TRUE itself
      if (!type || type->n_typmods > 0 || type->setof || type->pct_type || !value.cast.empty()) return {};
      if (value.kind != Value::Kind::Default && value.kind != Value::Kind::Other) value.cast = type_name(type);
      return value;
    }
    case PG_QUERY__NODE__NODE_A_EXPR: {  // -5::int8 is -(5::int8)
      const PgQuery__AExpr* expr = node->a_expr;
      bool is_minus = expr->kind == PG_QUERY__A__EXPR__KIND__AEXPR_OP && !expr->lexpr && expr->n_name == 1 &&
                      string_of(expr->name[0]) == "-";
      Value value = is_minus ? value_of(expr->rexpr) : Value();
      if (value.kind != Value::Kind::Literal || value.is_negated || !is_integer_type(value.cast)) return {};
      value.is_negated = true;
      return value;
    }
    default:
      return {};
  }
}

Equality::Side StatementReader::side_of(const Node* node) const {
  Equality::Side side;
  side.column = column_of(node);
  if (!side.column) side.value = value_of(node);
  return side;
}

}  // namespace lokadb::sql
