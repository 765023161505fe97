// For each table r of the statement, take the equalities that hold for every row of r in the answer, and gather the
// columns and values that are equal by them into classes. Then
//   - a value in the class of r's tenant column is r's organization;
//   - a value in the class of a column that holds keys of table P (P's key, or a relation to P) tells, by P's refs, the
//     organization of the row that the column is in, since a child belongs to its parent's organization;
//   - two columns of one class that hold keys of the same table are in rows of one organization;
//   - rows of one organization share what is known of it. Also across tables: what is known of s for every row of s in
//     the answer is known of the row of s that a row of r is combined with.
#include "route/known.h"

#include <algorithm>
#include <numeric>

namespace lokadb::route {

namespace {

using catalog::Table;

constexpr std::uint16_t kNoDomain = 0xffff;

// Sets of things found to be equal, over small numbers.
class Classes {
 public:
  std::size_t add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  std::size_t of(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[of(a)] = of(b); }
  std::size_t size() const { return parent_.size(); }

 private:
  std::vector<std::size_t> parent_;
};

// What a class is made of: columns, single values, lists of values.
struct Node {
  enum class Kind : std::uint8_t { Column, Value, List, KeyOwner } kind = Kind::Column;
  Place place{};
  std::vector<sql::Value> values{};
  bool is_array = false;
  std::uint16_t domain = kNoDomain;  // Column: holds keys of this table. KeyOwner: the refs to ask
  const Table* table = nullptr;      // Column
};

// The equalities that hold for one relation, and what follows from them.
class Closure {
 public:
  Closure(const Names& names, const sql::Statement& statement, std::span<const Table> tables)
      : names_(names), statement_(statement), tables_(tables) {}

  void take_equalities(std::uint16_t relation) {
    relation_ = relation;
    for (const sql::Equality& e : statement_.equalities)
      if (holds(e.holds_for)) take(e);
    for (const sql::Membership& m : statement_.memberships)
      if (holds(m.holds_for)) take(m);
    tenant_of(relation, relation);
    share_owners();
  }

  // Sources of the relation's organization, and the other relations that have the same.
  void conclude(Analysis& analysis, Bound& bound, std::vector<std::uint16_t>& linked) {
    std::size_t wanted = classes_.of(tenant_of(relation_, relation_));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (classes_.of(i) != wanted) continue;
      const Node& n = nodes_[i];
      if (n.kind == Node::Kind::Column) {
        if (n.place.relation != relation_ && n.place.column == n.table->tenant) linked.push_back(n.place.relation);
        continue;
      }
      Source source;
      source.values = n.values;
      source.is_array = n.is_array;
      if (n.kind == Node::Kind::KeyOwner) {
        source.kind = Source::Kind::Key;
        source.table = n.domain;
        source.type = tables_[n.domain].key_type;
        source.may_dangle = n.place.column != catalog::kNoColumn;
      } else {
        source.table = bound.table;
        source.type = tables_[bound.table].tenant_type;
      }
      std::uint16_t number = add_source(analysis, std::move(source));
      if (std::find(bound.sources.begin(), bound.sources.end(), number) == bound.sources.end())
        bound.sources.push_back(number);
    }
  }

 private:
  bool holds(sql::RelationSet set) const { return (set & names_.covering(relation_)) != 0; }

  std::size_t column_node(const Place& place) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].kind == Node::Kind::Column && nodes_[i].place == place) return i;
    const Table* table = names_.table(place.relation);
    Node node;
    node.place = place;
    node.table = table;
    if (place.column == table->key)
      node.domain = table->number;
    else if (const catalog::Parent* parent = table->parent(place.column))
      node.domain = parent->table;
    nodes_.push_back(std::move(node));
    return classes_.add();
  }

  std::size_t tenant_of(std::uint16_t mention, std::uint16_t relation) {
    return column_node({mention, relation, names_.table(relation)->tenant});
  }

  std::size_t value_node(const sql::Value& value) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].kind == Node::Kind::Value && is_same_value(nodes_[i].values[0], value)) return i;
    Node node;
    node.kind = Node::Kind::Value;
    node.values = {value};
    nodes_.push_back(std::move(node));
    return classes_.add();
  }

  std::optional<std::size_t> side(const sql::Equality::Side& s) {
    if (!s.column) return is_plain_value(s.value) ? std::optional(value_node(s.value)) : std::nullopt;
    Names::Found found = names_.find(*s.column);
    if (found.kind != Names::Found::Kind::Column) return std::nullopt;
    if (!is_plain_comparable(*names_.table(found.place.relation), found.place.column)) return std::nullopt;
    return column_node(found.place);
  }

  void take(const sql::Equality& e) {
    if (!e.left.column && !e.right.column) return;
    auto left = side(e.left), right = side(e.right);
    if (left && right) classes_.join(*left, *right);
  }

  void take(const sql::Membership& m) {
    auto column = side({m.column, {}});
    if (!column) return;
    Node node;
    node.kind = Node::Kind::List;
    node.is_array = m.array.has_value();
    node.values = m.array ? std::vector{*m.array} : m.values;
    if (node.values.empty() || !std::all_of(node.values.begin(), node.values.end(), is_plain_value)) return;
    nodes_.push_back(std::move(node));
    classes_.join(*column, classes_.add());
  }

  // Rows whose columns hold the same key are of one organization: that of the key's owner.
  void share_owners() {
    const std::size_t n = nodes_.size();  // what is added below needs no second look
    for (std::size_t i = 0; i < n; ++i) {
      if (nodes_[i].kind != Node::Kind::Column || nodes_[i].domain == kNoDomain) continue;
      std::size_t mine = tenant_of(nodes_[i].place.mention, nodes_[i].place.relation);
      for (std::size_t j = 0; j < n; ++j) {
        if (j == i || key_class(j) != key_class(i)) continue;
        if (nodes_[j].kind == Node::Kind::Column) {
          if (nodes_[j].domain == nodes_[i].domain)
            owners_.emplace_back(mine, tenant_of(nodes_[j].place.mention, nodes_[j].place.relation));
        } else {
          owners_.emplace_back(mine, owner_node(nodes_[i], nodes_[j]));
        }
      }
    }
    for (auto [a, b] : owners_) classes_.join(a, b);
  }

  // Classes of keys, as they were before rows were found to have one organization.
  std::size_t key_class(std::size_t i) { return classes_.of(i); }

  std::size_t owner_node(const Node& column, const Node& value) {
    bool is_declared =
        column.place.column != column.table->key && column.table->parent(column.place.column)->is_declared;
    Node node;
    node.kind = Node::Kind::KeyOwner;
    node.values = value.values;
    node.is_array = value.is_array;
    node.domain = column.domain;
    if (is_declared) node.place.column = column.place.column;
    nodes_.push_back(std::move(node));
    return classes_.add();
  }

  const Names& names_;
  const sql::Statement& statement_;
  std::span<const Table> tables_;
  std::uint16_t relation_ = 0;
  std::vector<Node> nodes_;
  Classes classes_;
  std::vector<std::pair<std::size_t, std::size_t>> owners_;
};

// Each relation has what is known of those that it shares its organization with.
void share(Analysis& analysis, const std::vector<std::vector<std::uint16_t>>& linked) {
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (std::size_t i = 0; i < analysis.bound.size(); ++i)
      for (const Bound& other : analysis.bound) {
        if (std::find(linked[i].begin(), linked[i].end(), other.relation) == linked[i].end()) continue;
        auto& mine = analysis.bound[i].sources;
        for (std::uint16_t s : other.sources)
          if (std::find(mine.begin(), mine.end(), s) == mine.end()) {
            mine.push_back(s);
            has_changed = true;
          }
      }
  }
}

void put_tenants_first(Analysis& analysis) {
  for (Bound& bound : analysis.bound)
    std::stable_sort(bound.sources.begin(), bound.sources.end(), [&](std::uint16_t a, std::uint16_t b) {
      return analysis.sources[a].kind < analysis.sources[b].kind;
    });
  for (std::size_t i = 0; i < analysis.sources.size(); ++i)
    if (analysis.sources[i].kind == Source::Kind::Tenant)
      analysis.named_by_itself.push_back(static_cast<std::uint16_t>(i));
}

}  // namespace

bool is_plain_value(const sql::Value& value) {
  using Kind = sql::Value::Kind;
  return value.kind == Kind::Literal || value.kind == Kind::Parameter || value.kind == Kind::Null;
}

bool is_same_value(const sql::Value& a, const sql::Value& b) {
  return a.kind == b.kind && a.index == b.index && a.is_negated == b.is_negated && a.cast == b.cast;
}

bool is_plain_comparable(const Table& table, std::uint16_t column) {
  using namespace catalog;
  if (column == table.key || column == table.tenant) return true;  // deterministic, as add-table sees to
  const Column& c = table.columns[column];
  if (c.type == kTextOid || c.type == kVarcharOid) return !c.has_collation;
  return c.type == kInt2Oid || c.type == kInt4Oid || c.type == kInt8Oid || c.type == kUuidOid;
}

std::uint16_t add_source(Analysis& analysis, Source source) {
  auto is_same = [&](const Source& s) {
    return s.kind == source.kind && s.table == source.table && s.type == source.type && s.is_array == source.is_array &&
           s.must_exist == source.must_exist && s.may_dangle == source.may_dangle &&
           std::equal(s.values.begin(), s.values.end(), source.values.begin(), source.values.end(), is_same_value);
  };
  auto found = std::find_if(analysis.sources.begin(), analysis.sources.end(), is_same);
  if (found != analysis.sources.end()) return static_cast<std::uint16_t>(found - analysis.sources.begin());
  analysis.sources.push_back(std::move(source));
  return static_cast<std::uint16_t>(analysis.sources.size() - 1);
}

void find_sources(const Names& names, const sql::Statement& statement, Analysis& analysis) {
  std::vector<std::vector<std::uint16_t>> linked(analysis.bound.size());
  for (std::size_t i = 0; i < analysis.bound.size(); ++i) {
    Closure closure(names, statement, analysis.catalog->tables());
    closure.take_equalities(analysis.bound[i].relation);
    closure.conclude(analysis, analysis.bound[i], linked[i]);
  }
  share(analysis, linked);
  put_tenants_first(analysis);
}

}  // namespace lokadb::route
