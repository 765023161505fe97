// Facts as text: short lines that a test can compare and a person can read.
//   r0.id  column of relation 0     ?1.id  of one that scope 1 sees     L0 literal     $1 parameter     ... expression
#include <array>

#include "sql/parse.h"

namespace lokadb::sql {
namespace {

constexpr std::array kClasses = {"select",      "insert",  "update",  "delete",  "merge",   "copy", "set",
                                 "transaction", "cursor",  "prepare", "explain", "show",    "lock", "truncate",
                                 "call",        "discard", "notify",  "ddl",     "utility", "empty"};
constexpr std::array kUses = {"read",      "insert",  "update", "delete",   "merge",
                              "copy-from", "copy-to", "lock",   "truncate", "other"};
constexpr std::array kHows = {"read", "inserted", "updated", "returned"};

std::string text_of(const Value& value) {
  std::string text;
  switch (value.kind) {
    case Value::Kind::Other:
      text = "...";
      break;
    case Value::Kind::Null:
      text = "NULL";
      break;
    case Value::Kind::Default:
      text = "DEFAULT";
      break;
    case Value::Kind::Literal:
      text = (value.is_negated ? "-L" : "L") + std::to_string(value.index);
      break;
    case Value::Kind::Parameter:
      text = "$" + std::to_string(value.index);
      break;
    case Value::Kind::Boolean:
      text = value.index ? "TRUE" : "FALSE";
      break;
    case Value::Kind::Word:
      text = value.word;
      break;
  }
  return value.cast.empty() ? text : text + "::" + value.cast;
}

std::string text_of(const Column& column) {
  std::string where = column.relation == kNone ? "?" : "r";
  if (column.relation != kNone)
    where += std::to_string(column.relation);
  else if (column.scope != kNone)
    where += std::to_string(column.scope);
  return where + "." + column.name;
}

std::string text_of(const Equality::Side& side) { return side.column ? text_of(*side.column) : text_of(side.value); }

template <class List>
std::string joined(const List& list) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += ", ";
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::string>)
      text += item;
    else
      text += text_of(item);
  }
  return text;
}

std::string text_of(RelationSet set) {
  std::string text;
  for (std::size_t i = 0; i < kMaxRelations; ++i)
    if (set >> i & 1) text += (text.empty() ? "" : ",") + std::to_string(i);
  return text.empty() ? "none" : text;
}

// Adds to a line the names of the flags that are set.
struct Flags {
  std::string& line;
  Flags& operator()(bool is_set, const char* name) {
    if (is_set) line.append(" ").append(name);
    return *this;
  }
};

std::string headline(const Statement& s) {
  std::string line = kClasses[static_cast<std::size_t>(s.kind)];
  if (s.inner != StatementClass::Empty) line += std::string("/") + kClasses[static_cast<std::size_t>(s.inner)];
  if (!s.name.empty()) line += " " + s.name;
  Flags{line}(s.has_returning, "returning")(s.has_row_locks, "row-locks")(s.has_skip_locked, "skip-locked")(
      s.has_nowait, "nowait")(s.has_limit, "limit")(s.has_aggregates, "aggregates")(s.has_subqueries, "subqueries")(
      s.has_outer_joins, "outer-joins")(s.has_set_operations, "set-operations")(s.has_recursion, "recursion")(
      s.modifies_in_with, "modifies-in-with")(s.has_current_of, "current-of")(s.has_select_into, "into")(
      s.is_with_hold, "with-hold")(s.makes_temporary, "temporary")(s.depends_on_literals, "depends-on-literals")(
      s.explain_analyzes, "analyzes");
  if (s.parameter_count) line += " parameters=" + std::to_string(s.parameter_count);
  return line;
}

std::string text_of(const Relation& relation, std::size_t index) {
  std::string line = "rel " + std::to_string(index) + " ";
  if (relation.kind == Relation::Kind::Subquery) line += "subquery ";
  if (relation.kind == Relation::Kind::CommonTable) line += "with ";
  if (!relation.catalog.empty()) line += relation.catalog + ".";
  if (!relation.schema.empty()) line += relation.schema + ".";
  line += relation.name;
  if (relation.has_alias) line += " as " + relation.alias;
  if (relation.use != Use::Read) line += std::string(" ") + kUses[static_cast<std::size_t>(relation.use)];
  if (relation.scope != kNone && relation.scope != 0) line += " scope=" + std::to_string(relation.scope);
  Flags{line}(relation.is_only, "only")(relation.has_column_aliases, "column-aliases")(
      relation.is_row_locked, "locked")(relation.is_transparent, "transparent");
  if (relation.kind == Relation::Kind::Named) return line;
  line += relation.outputs_are_known ? " (" : " (?";
  bool is_first = true;
  for (const Relation::Output& output : relation.outputs) {
    line += is_first ? "" : ", ";
    line += output.name;
    if (output.from) line += "=" + text_of(*output.from);
    is_first = false;
  }
  return line + ")";
}

std::string text_of(const FunctionCall& call) {
  std::string line = "fn " + (call.schema.empty() ? "" : call.schema + ".") + call.name;
  line += "(" + joined(call.arguments) + ")";
  Flags{line}(call.is_aggregate_syntax, "aggregate")(call.has_over, "over")(call.is_in_from, "from");
  if (call.target != kNone) line += " target=" + std::to_string(call.target);
  if (call.runs_once) line += " once";
  return line;
}

std::string text_of(const Insertion& insertion) {
  static constexpr std::array kSources = {"values", "select", "unnest", "default-values"};
  static constexpr std::array kConflicts = {"", " do-nothing", " do-update"};
  std::string line =
      "insert (" + joined(insertion.columns) + ") " + kSources[static_cast<std::size_t>(insertion.source)];
  for (const auto& row : insertion.rows) line += " (" + joined(row) + ")";
  if (!insertion.arrays.empty()) line += " [" + joined(insertion.arrays) + "]";
  if (!insertion.selected.empty()) line += " {" + joined(insertion.selected) + "}";
  line += kConflicts[static_cast<std::size_t>(insertion.conflict)];
  if (!insertion.conflict_columns.empty()) line += " on (" + joined(insertion.conflict_columns) + ")";
  if (!insertion.conflict_constraint.empty()) line += " on constraint " + insertion.conflict_constraint;
  Flags{line}(!insertion.conflict_is_plain, "not-plain")(insertion.overriding == Insertion::Overriding::User,
                                                         "overriding-user")(
      insertion.overriding == Insertion::Overriding::System, "overriding-system");
  return line;
}

std::string text_of(const Copying& copying) {
  std::string line = copying.is_from ? "copy from" : "copy to";
  Flags{line}(copying.is_query, "query")(copying.is_stream, "stream")(copying.has_where, "where");
  if (!copying.columns.empty()) line += " (" + joined(copying.columns) + ")";
  if (!copying.options.empty()) line += " with " + joined(copying.options);
  return line;
}

std::string text_of(const Setting& setting) {
  static constexpr std::array kKinds = {"value",     "default",     "current", "reset",
                                        "reset-all", "transaction", "session", "constraints"};
  std::string line = std::string("set ") + kKinds[static_cast<std::size_t>(setting.kind)];
  if (!setting.name.empty()) line += " " + setting.name;
  if (!setting.values.empty()) line += " = " + joined(setting.values);
  if (setting.is_local) line += " local";
  return line;
}

std::string text_of(const TransactionControl& control) {
  static constexpr std::array kKinds = {"begin",       "commit",  "rollback",        "savepoint",        "release",
                                        "rollback-to", "prepare", "commit-prepared", "rollback-prepared"};
  std::string line = std::string("tx ") + kKinds[static_cast<std::size_t>(control.kind)];
  if (!control.savepoint.empty()) line += " " + control.savepoint;
  if (!control.isolation.empty()) line += " isolation=" + control.isolation;
  if (control.read_only) line += *control.read_only ? " read-only" : " read-write";
  if (control.deferrable) line += *control.deferrable ? " deferrable" : " not-deferrable";
  if (control.is_chained) line += " chain";
  return line;
}

void dump_conditions(const Statement& s, std::string& out) {
  for (const Equality& equality : s.equalities)
    out +=
        "eq " + text_of(equality.left) + " = " + text_of(equality.right) + " for " + text_of(equality.holds_for) + "\n";
  for (const Membership& membership : s.memberships) {
    out += "in " + text_of(membership.column) + " ";
    out += membership.array ? "any " + text_of(*membership.array) : "(" + joined(membership.values) + ")";
    out += " for " + text_of(membership.holds_for) + "\n";
  }
}

void dump_columns(const Statement& s, std::string& out) {
  for (std::size_t how = 0; how < kHows.size(); ++how) {
    std::string line;
    for (const ColumnUse& use : s.columns)
      if (static_cast<std::size_t>(use.how) == how) line += " " + text_of(use.column) + (use.may_be_output ? "?" : "");
    if (!line.empty()) out += kHows[how] + line + "\n";
  }
}

}  // namespace

std::string dump(const Statement& s) {
  std::string out = headline(s) + "\n";
  for (std::size_t i = 0; i < s.relations.size(); ++i) out += text_of(s.relations[i], i) + "\n";
  dump_conditions(s, out);
  dump_columns(s, out);
  for (const FunctionCall& call : s.functions) out += text_of(call) + "\n";
  if (s.insertion) out += text_of(*s.insertion) + "\n";
  for (const Assignment& assignment : s.assignments)
    out += "assign " + assignment.column + " = " + (assignment.is_own_value ? "own" : text_of(assignment.value)) + "\n";
  if (s.copying) out += text_of(*s.copying) + "\n";
  if (s.setting) out += text_of(*s.setting) + "\n";
  if (s.transaction) out += text_of(*s.transaction) + "\n";
  if (!s.group_by.empty()) out += "group by " + joined(s.group_by) + "\n";
  if (s.group_by_other) out += "group by other\n";
  if (!s.operators.empty()) out += "ops " + joined(s.operators) + "\n";
  if (!s.types.empty()) out += "types " + joined(s.types) + "\n";
  if (!s.collations.empty()) out += "collations " + joined(s.collations) + "\n";
  if (!s.not_understood.empty()) out += "not understood: " + joined(s.not_understood) + "\n";
  return out;
}

std::string dump(const Parsed& parsed) {
  if (!parsed.error.empty()) return "error at " + std::to_string(parsed.error_position) + ": " + parsed.error + "\n";
  std::string out;
  for (const Statement& statement : parsed.statements) out += dump(statement);
  return out;
}

}  // namespace lokadb::sql
