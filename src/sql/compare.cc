#include "sql/compare.h"

#include <algorithm>
#include <tuple>

#include "sql/parse.h"
#include "sql/template_key.h"

namespace lokadb::sql {
namespace {

template <class Function>
void for_each_column(Statement& s, Function f) {
  auto side = [&f](Equality::Side& where) {
    if (where.column) f(*where.column);
  };
  for (Relation& relation : s.relations)
    for (Relation::Output& output : relation.outputs)
      if (output.from) f(*output.from);
  for (Equality& equality : s.equalities) side(equality.left), side(equality.right);
  for (Membership& membership : s.memberships) f(membership.column);
  for (ColumnUse& use : s.columns) f(use.column);
  for (Column& column : s.group_by) f(column);
  if (s.insertion)
    for (Equality::Side& selected : s.insertion->selected) side(selected);
}

template <class Function>
void for_each_value(Statement& s, Function f) {
  auto each = [&f](std::vector<Value>& values) { std::for_each(values.begin(), values.end(), f); };
  for (Equality& equality : s.equalities) f(equality.left.value), f(equality.right.value);
  for (Membership& membership : s.memberships) {
    each(membership.values);
    if (membership.array) f(*membership.array);
  }
  for (FunctionCall& call : s.functions) each(call.arguments);
  for (Assignment& assignment : s.assignments) f(assignment.value);
  if (s.setting) each(s.setting->values);
  if (!s.insertion) return;
  for (auto& row : s.insertion->rows) each(row);
  each(s.insertion->arrays);
  for (Equality::Side& selected : s.insertion->selected) f(selected.value);
}

void keep_those_of(std::vector<std::string>& now, const std::vector<std::string>& old) {
  std::erase_if(now, [&old](const std::string& s) { return std::find(old.begin(), old.end(), s) == old.end(); });
}

void take_out_words(Statement& now, const Statement& old) {
  keep_those_of(now.operators, old.operators);
  keep_those_of(now.types, old.types);
  keep_those_of(now.collations, old.collations);
  now.parameter_count = old.parameter_count;
}

void normalize(Statement& s) {
  for_each_column(s, [](Column& column) { column.scope = kNone; });
  for (Relation& relation : s.relations) relation.scope = kNone;
  for (auto* list : {&s.operators, &s.types, &s.collations}) std::sort(list->begin(), list->end());
  std::sort(s.columns.begin(), s.columns.end(), [](const ColumnUse& a, const ColumnUse& b) {
    return std::tie(a.how, a.column.relation, a.column.name) < std::tie(b.how, b.column.relation, b.column.name);
  });
  auto is_same = [](const ColumnUse& a, const ColumnUse& b) {
    return std::tie(a.how, a.column.relation, a.column.name) == std::tie(b.how, b.column.relation, b.column.name);
  };
  s.columns.erase(std::unique(s.columns.begin(), s.columns.end(), is_same), s.columns.end());
}

bool is_of(const Equality& equality, std::uint16_t relation, std::string_view column) {
  const auto& left = equality.left.column;
  return left && !equality.right.column && left->relation == relation && left->name == column;
}

}  // namespace

bool are_equal_facts(const Statement& a, const Statement& b) {
  Statement left = a, right = b;
  normalize(left);
  normalize(right);
  return dump(left) == dump(right);
}

bool take_out_wraps(Statement& now, const Statement& old, const std::vector<std::uint16_t>& relations,
                    std::string_view column) {
  if (now.relations.size() != old.relations.size() + relations.size()) return false;
  std::vector<std::uint16_t> old_numbers;  // kNone: inside a wrap
  std::vector<Relation> kept;
  for (std::uint16_t i = 0; i < old.relations.size(); ++i) {
    if (std::find(relations.begin(), relations.end(), i) != relations.end()) {
      const Relation& inside = now.relations[old_numbers.size()];
      auto number = static_cast<std::uint16_t>(old_numbers.size());
      const Relation& around = now.relations[old_numbers.size() + 1];
      auto added = std::find_if(now.equalities.begin(), now.equalities.end(),
                                [number, column](const Equality& e) { return is_of(e, number, column); });
      bool is_wrap = around.kind == Relation::Kind::Subquery && around.is_transparent &&
                     around.alias == old.relations[i].alias && inside.name == old.relations[i].name &&
                     inside.schema == old.relations[i].schema && added != now.equalities.end();
      if (!is_wrap) return false;
      now.equalities.erase(added);
      old_numbers.push_back(kNone);
      kept.push_back(old.relations[i]);
      kept.back().is_row_locked = around.is_row_locked;
    } else {
      kept.push_back(now.relations[old_numbers.size()]);
    }
    old_numbers.push_back(i);
  }
  now.relations = std::move(kept);
  std::erase_if(now.columns, [&old_numbers](const ColumnUse& use) {
    return use.column.relation != kNone && old_numbers[use.column.relation] == kNone;
  });
  for_each_column(now, [&old_numbers](Column& c) {
    if (c.relation < old_numbers.size()) c.relation = old_numbers[c.relation];
  });
  auto old_set = [&old_numbers](RelationSet set) {
    RelationSet mapped = 0;
    for (std::size_t i = 0; i < old_numbers.size(); ++i)
      if (set >> i & 1 && old_numbers[i] != kNone) mapped |= RelationSet{1} << old_numbers[i];
    return mapped;
  };
  for (Equality& equality : now.equalities) equality.holds_for = old_set(equality.holds_for);
  for (Membership& membership : now.memberships) membership.holds_for = old_set(membership.holds_for);
  now.has_subqueries = old.has_subqueries;
  take_out_words(now, old);
  return true;
}

bool take_out_condition(Statement& now, const Statement& old, std::uint16_t relation, std::string_view column) {
  // Of several the last one of WHERE is ours, and behind it can only be some of RETURNING's subqueries.
  auto added = std::find_if(now.equalities.rbegin(), now.equalities.rend(), [&](const Equality& equality) {
    return is_of(equality, relation, column) && equality.holds_for >> relation & 1;
  });
  if (added == now.equalities.rend()) return false;
  now.equalities.erase(std::next(added).base());
  std::erase_if(now.columns, [&](const ColumnUse& use) {
    auto is_same = [&use](const ColumnUse& other) {
      return other.how == use.how && other.column.relation == use.column.relation &&
             other.column.name == use.column.name;
    };
    return use.column.relation == relation && use.column.name == column &&
           std::none_of(old.columns.begin(), old.columns.end(), is_same);
  });
  take_out_words(now, old);
  return true;
}

void take_out_literals(Statement& now, std::string_view old_text, const Rewritten& rewritten) {
  Lifted before, after;
  lift(old_text, true, before);
  lift(rewritten.text, true, after);
  std::vector<std::uint16_t> old_numbers(after.literals.size(), kNone);
  for (std::size_t i = 0; i < before.literals.size(); ++i) {
    std::size_t start = rewritten.positions.to_new(before.literals[i].start);
    for (std::size_t k = 0; k < after.literals.size(); ++k)
      if (after.literals[k].start == start) old_numbers[k] = static_cast<std::uint16_t>(i);
  }
  for_each_value(now, [&old_numbers](Value& value) {
    if (value.kind == Value::Kind::Literal && value.index < old_numbers.size()) value.index = old_numbers[value.index];
  });
}

}  // namespace lokadb::sql
