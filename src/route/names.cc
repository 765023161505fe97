#include "route/names.h"

#include <algorithm>

namespace lokadb::route {

namespace {

using Kind = Names::Found::Kind;

constexpr int kMaxDepth = 32;  // of subqueries in subqueries

bool has_output(const sql::Relation& r, std::string_view name) {
  return std::any_of(r.outputs.begin(), r.outputs.end(), [&](const auto& output) { return output.name == name; });
}

std::string written(const sql::Relation& r) { return r.schema.empty() ? r.name : r.schema + "." + r.name; }

}  // namespace

bool is_system_column(std::string_view name) {
  constexpr std::string_view kNames[] = {"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Names::Names(const catalog::Catalog& catalog, const sql::Statement& statement, const catalog::SearchPath& path)
    : catalog_(catalog),
      statement_(statement),
      tables_(statement.relations.size()),
      mentions_(statement.relations.size(), sql::kNone),
      covering_(statement.relations.size()) {
  for (std::size_t i = 0; i < statement.relations.size(); ++i) look_at(static_cast<std::uint16_t>(i), path);
  count_mentions();
}

void Names::set_fault(Reason reason, std::string detail) {
  if (!fault_) fault_ = {reason, std::move(detail)};
}

void Names::look_at(std::uint16_t number, const catalog::SearchPath& path) {
  const sql::Relation& r = statement_.relations[number];
  if (r.kind != sql::Relation::Kind::Named) return;
  catalog::Catalog::Found found = catalog_.find(r.schema, r.name, path);
  using FoundKind = catalog::Catalog::Found::Kind;
  if (found.kind == FoundKind::Table) {
    tables_[number] = found.table;
    has_lokadb_table_ = true;
    if (!r.catalog.empty()) set_fault(Reason::NotUnderstood, "a database's name in front of a table");
    if (r.is_only) set_fault(Reason::OnlyTable, written(r));
    // The organization has its tables in public. A table of another schema is found there only by its bare name.
    if (!r.schema.empty() && r.schema != "public") set_fault(Reason::OtherSchema, written(r));
    return;
  }
  if (found.kind == FoundKind::Hidden) {
    has_lokadb_table_ = true;
    return set_fault(Reason::NameHidden, written(r));
  }
  using catalog::OtherKind;
  if (found.other == OtherKind::View || found.other == OtherKind::Part || found.other == OtherKind::Refs) {
    has_lokadb_table_ = true;
    return set_fault(found.other == OtherKind::View ? Reason::View : Reason::InternalTable, written(r));
  }
  has_cloud_table_ = true;
  has_active_table_ |= found.other == OtherKind::Active;
  set_fault(Reason::CloudTable, written(r));
}

// A table directly in FROM is its own mention. One inside a subquery is seen through the outermost relation that shows
// it, as long as no two of them do.
void Names::count_mentions() {
  const auto& relations = statement_.relations;
  for (std::size_t i = 0; i < relations.size(); ++i)
    if (relations[i].kind == sql::Relation::Kind::Named) mentions_[i] = static_cast<std::uint16_t>(i);
  std::vector<std::uint16_t> shown_by(relations.size(), sql::kNone);
  std::vector<bool> is_shown_twice(relations.size());
  for (std::size_t i = 0; i < relations.size(); ++i) {
    std::vector<std::uint16_t> inside;
    for (const auto& output : relations[i].outputs)
      if (output.from && output.from->relation < relations.size() &&
          std::find(inside.begin(), inside.end(), output.from->relation) == inside.end())
        inside.push_back(output.from->relation);
    for (std::uint16_t r : inside) {
      if (shown_by[r] != sql::kNone) is_shown_twice[r] = true;
      shown_by[r] = static_cast<std::uint16_t>(i);
    }
  }
  for (std::size_t i = 0; i < relations.size(); ++i) {
    std::size_t at = i;
    for (int depth = 0; depth < kMaxDepth && shown_by[at] != sql::kNone; ++depth) {
      if (is_shown_twice[at]) {
        mentions_[i] = sql::kNone;
        break;
      }
      at = shown_by[at];
    }
    at = i;
    if (relations.size() > sql::kMaxRelations) continue;  // not understood anyway
    covering_[i] = sql::RelationSet{1} << i;
    for (int depth = 0; depth < kMaxDepth && shown_by[at] != sql::kNone && !is_shown_twice[at]; ++depth) {
      at = shown_by[at];
      if (!relations[at].is_transparent) break;
      covering_[i] |= sql::RelationSet{1} << at;
    }
  }
}

Names::Found Names::in_relation(std::uint16_t number, const std::string& name, int depth) const {
  const sql::Relation& r = statement_.relations[number];
  if (r.kind == sql::Relation::Kind::Named) {
    const catalog::Table* t = tables_[number];
    if (!t || r.has_column_aliases) return {Kind::Other, {}, {}};
    std::uint16_t column = t->column(name);
    if (column != catalog::kNoColumn) return {Kind::Column, {number, number, column}, {}};
    if (is_system_column(name)) return {Kind::System, {}, {}};
    return {name == r.alias ? Kind::WholeRow : Kind::Nothing, {}, {}};
  }
  return in_outputs(number, name, depth);
}

// An output named "*" stands for all columns of the relation that it comes from.
Names::Found Names::in_outputs(std::uint16_t number, const std::string& name, int depth) const {
  const sql::Relation& r = statement_.relations[number];
  const Found other{Kind::Other, {}, {}};
  if ((r.has_column_aliases && !r.outputs_are_known) || depth >= kMaxDepth) return other;
  Found hit;
  for (const auto& output : r.outputs) {
    Found found = other;
    if (output.name == "*" && output.from && output.from->relation != sql::kNone)
      found = in_relation(output.from->relation, name, depth + 1);
    else if (output.name != name)
      continue;
    else if (output.from)
      found = output.from->relation == sql::kNone ? find(*output.from)
                                                  : in_relation(output.from->relation, output.from->name, depth + 1);
    if (output.name == "*" && found.kind != Kind::Column && found.kind != Kind::Other) continue;
    if (hit.kind != Kind::Nothing) return other;
    hit = found.kind == Kind::Column ? found : other;
  }
  if (hit.kind == Kind::Nothing) return r.outputs_are_known || has_only_stars_of_tables(r) ? hit : other;
  if (hit.kind == Kind::Column)
    hit.place.mention = mentions_[hit.place.relation] == sql::kNone ? number : hit.place.relation;
  return hit;
}

// Then its columns are known after all.
bool Names::has_only_stars_of_tables(const sql::Relation& r) const {
  for (const auto& output : r.outputs)
    if (output.name == "*" &&
        !(output.from && output.from->relation < tables_.size() && tables_[output.from->relation]))
      return false;
  return r.outputs.size() == 1 && r.outputs.front().name == "*";
}

Names::Found Names::find(const sql::Column& column) const {
  if (column.name == "*") return {Kind::WholeRow, {}, {}};
  if (column.relation != sql::kNone) return in_relation(column.relation, column.name, 0);
  for (std::uint16_t s = column.scope; s != sql::kNone && s < statement_.scopes.size();
       s = statement_.scopes[s].parent) {
    const sql::Scope& scope = statement_.scopes[s];
    std::vector<Found> hits;
    bool may_be_elsewhere = scope.has_unknown_columns;
    for (std::uint16_t r : scope.relations) {
      Found found = in_relation(r, column.name, 0);
      const sql::Relation& relation = statement_.relations[r];
      bool is_known = relation.kind != sql::Relation::Kind::Named || (tables_[r] && !relation.has_column_aliases);
      // What is not known may or may not have the name; with a hit elsewhere it has not, or the server says
      // "ambiguous".
      if (!is_known || (found.kind == Kind::Other && !has_output(relation, column.name)))
        may_be_elsewhere = true;
      else if (found.kind != Kind::Nothing && found.kind != Kind::WholeRow)
        hits.push_back(std::move(found));
    }
    if (hits.size() == 1) return hits.front();
    if (hits.size() > 1) {
      Found several{Kind::Several, {}, {}};
      for (const Found& hit : hits)
        if (hit.kind == Kind::Column) several.several.push_back(hit.place);
      return several;
    }
    if (may_be_elsewhere) return {Kind::Other, {}, {}};
    if (s == scope.parent) break;
  }
  for (std::uint16_t s = column.scope; s != sql::kNone && s < statement_.scopes.size(); s = statement_.scopes[s].parent)
    for (std::uint16_t r : statement_.scopes[s].relations)
      if (statement_.relations[r].alias == column.name) return {Kind::WholeRow, {}, {}};
  return {};
}

}  // namespace lokadb::route
