#include "route/writes.h"

#include <algorithm>

#include "route/known.h"

namespace lokadb::route {

namespace {

using catalog::kNoColumn;
using catalog::Table;
using sql::Insertion;

class WriteJudge {
 public:
  WriteJudge(const Names& names, const sql::Statement& statement, std::uint16_t target, Analysis& analysis)
      : names_(names), statement_(statement), target_(target), table_(*names.table(target)), analysis_(analysis) {}

  Fault judge() {
    switch (statement_.relations[target_].use) {
      case sql::Use::Insert:
        return insertion(*statement_.insertion);
      case sql::Use::Update:
        return assignments();
      case sql::Use::Delete:
        return deletion();
      case sql::Use::CopyFrom:
        return copying(*statement_.copying);
      default:
        return {};
    }
  }

 private:
  Bound& bound() {
    return *std::find_if(analysis_.bound.begin(), analysis_.bound.end(),
                         [&](const Bound& b) { return b.relation == target_; });
  }

  void set_source(Source source) {
    bool is_tenant = source.kind == Source::Kind::Tenant;
    std::uint16_t number = add_source(analysis_, std::move(source));
    auto& sources = bound().sources;
    sources.insert(is_tenant ? sources.begin() : sources.end(), number);
    if (is_tenant) analysis_.named_by_itself.push_back(number);
  }

  // --- new rows

  static std::size_t width(const Insertion& in) {
    return in.source == Insertion::Source::Values && !in.rows.empty() ? in.rows.front().size()
           : in.source == Insertion::Source::Unnest                   ? in.arrays.size()
           : in.source == Insertion::Source::Select                   ? in.selected.size()
                                                                      : 0;
  }

  // The columns that the rows have values for. Fewer than the table has: the server's rule takes the first ones.
  std::vector<std::uint16_t> inserted_columns(const std::vector<std::string>& names, std::size_t width) const {
    std::vector<std::uint16_t> columns;
    for (const std::string& name : names) columns.push_back(table_.column(name));
    if (names.empty())
      for (std::size_t c = 0; c < table_.columns.size() && c < width; ++c)
        columns.push_back(static_cast<std::uint16_t>(c));
    return columns;
  }

  static std::size_t position(const std::vector<std::uint16_t>& columns, std::uint16_t wanted) {
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), wanted) - columns.begin());
  }

  // Columns without a value get their default, which only the cloud knows. Null everywhere; key and tenant are added.
  Fault check_defaults(const std::vector<std::uint16_t>& columns) const {
    for (std::uint16_t c = 0; c < table_.columns.size(); ++c) {
      const catalog::Column& column = table_.columns[c];
      if (c == table_.key || position(columns, c) < columns.size()) continue;
      if (c == table_.tenant && table_.tenant_added) continue;
      if (c == table_.tenant) return {Reason::InsertWithoutOrganization, column.name};
      if (column.has_default) return {Reason::CloudDefault, column.name};
    }
    return {};
  }

  Fault insertion(const Insertion& in) {
    analysis_.may_change_keys = true;
    std::vector<std::uint16_t> columns = inserted_columns(in.columns, width(in));
    for (std::uint16_t c : columns)
      if (c == kNoColumn) return {Reason::ColumnNotFound, table_.name};
    Fault fault = judge_source(in, columns);
    if (Fault conflict = judge_conflict(in); !fault) fault = conflict;
    if (!fault) fault = check_defaults(columns);
    for (const catalog::Parent& p : table_.parents)
      if (p.is_declared && position(columns, p.column) < columns.size()) analysis_.declared_parents.push_back(p.column);
    return fault;
  }

  Fault judge_source(const Insertion& in, const std::vector<std::uint16_t>& columns) {
    switch (in.source) {
      case Insertion::Source::DefaultValues:
        return {Reason::CloudDefault, "DEFAULT VALUES"};
      case Insertion::Source::Values:
        return judge_rows(in, columns);
      case Insertion::Source::Unnest:
        return judge_arrays(in, columns);
      case Insertion::Source::Select:
        return judge_selected(in, columns);
    }
    return {};
  }

  Fault judge_rows(const Insertion& in, const std::vector<std::uint16_t>& columns) {
    std::size_t key = position(columns, table_.key);
    std::size_t defaults = 0;
    for (const auto& row : in.rows)
      if (row.size() != columns.size()) return {Reason::NotUnderstood, "VALUES of different lengths"};
    for (std::size_t i = 0; i < columns.size(); ++i) take_column(in, columns[i], i);
    for (const auto& row : in.rows) {
      for (std::size_t i = 0; i < row.size(); ++i)
        if (row[i].kind == sql::Value::Kind::Default && columns[i] != table_.key &&
            !(columns[i] == table_.tenant && table_.tenant_added) && table_.columns[columns[i]].has_default)
          return {Reason::CloudDefault, table_.columns[columns[i]].name};
      if (key < row.size() && row[key].kind == sql::Value::Kind::Default) ++defaults;
    }
    analysis_.needs_new_keys = key == columns.size() || defaults > 0;
    // Some rows with a key of their own and some without: which is which would have to be told row by row.
    if (defaults > 0 && defaults != in.rows.size()) return {Reason::CloudDefault, table_.columns[table_.key].name};
    if (analysis_.needs_new_keys && !table_.columns[table_.key].has_default)
      return {Reason::CloudDefault, table_.columns[table_.key].name};
    return {};
  }

  // The tenant column of all rows, or a parent's key.
  void take_column(const Insertion& in, std::uint16_t column, std::size_t at) {
    const catalog::Parent* parent = table_.parent(column);
    if (column != table_.tenant && !parent) return;
    Source source;
    source.must_exist = true;
    for (const auto& row : in.rows) {
      if (!is_plain_value(row[at])) return;
      source.values.push_back(row[at]);
    }
    name_column(source, column, parent);
    set_source(std::move(source));
  }

  void name_column(Source& source, std::uint16_t column, const catalog::Parent* parent) const {
    if (column == table_.tenant) {
      source.table = table_.number;
      source.type = table_.tenant_type;
    } else {
      source.kind = Source::Kind::Key;
      source.table = parent->table;
      source.type = analysis_.catalog->tables()[parent->table].key_type;
    }
  }

  Fault judge_arrays(const Insertion& in, const std::vector<std::uint16_t>& columns) {
    if (in.arrays.size() != columns.size()) return {Reason::NotUnderstood, "unnest"};
    analysis_.needs_new_keys = position(columns, table_.key) == columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const catalog::Parent* parent = table_.parent(columns[i]);
      if ((columns[i] != table_.tenant && !parent) || !is_plain_value(in.arrays[i])) continue;
      Source source;
      source.values = {in.arrays[i]};
      source.is_array = source.must_exist = true;
      name_column(source, columns[i], parent);
      set_source(std::move(source));
    }
    if (analysis_.needs_new_keys && !table_.columns[table_.key].has_default)
      return {Reason::CloudDefault, table_.columns[table_.key].name};
    return {};
  }

  // INSERT ... SELECT: key and organization are values or columns of tables whose organization is known.
  Fault judge_selected(const Insertion& in, const std::vector<std::uint16_t>& columns) {
    std::size_t key = position(columns, table_.key), tenant = position(columns, table_.tenant);
    const Fault fault = key == columns.size() ? Fault{Reason::InsertSelect, table_.name} : Fault{};
    if (in.selected.size() != columns.size()) return {Reason::InsertSelect, table_.name};
    if (tenant == columns.size()) return table_.tenant_added ? fault : Fault{Reason::InsertSelect, table_.name};
    const sql::Equality::Side& side = in.selected[tenant];
    if (!side.column) {
      if (!is_plain_value(side.value)) return {Reason::InsertSelect, table_.name};
      Source source;
      source.must_exist = true;
      source.values = {side.value};
      name_column(source, table_.tenant, nullptr);
      set_source(std::move(source));
      return fault;
    }
    Names::Found found = names_.find(*side.column);
    if (found.kind != Names::Found::Kind::Column || found.place.column != names_.table(found.place.relation)->tenant)
      return {Reason::InsertSelect, table_.name};
    for (const Bound& other : analysis_.bound)
      if (other.relation == found.place.relation) bound().sources = other.sources;
    return fault;
  }

  // --- ON CONFLICT

  bool is_unique_here(const Insertion& in) const {
    std::vector<std::uint16_t> columns;
    for (const std::string& name : in.conflict_columns) columns.push_back(table_.column(name));
    std::sort(columns.begin(), columns.end());
    return std::any_of(table_.unique_sets.begin(), table_.unique_sets.end(), [&](const catalog::UniqueSet& set) {
      return in.conflict_constraint.empty() ? set.columns == columns
                                            : set.is_constraint && set.name == in.conflict_constraint;
    });
  }

  // No index is on both, unless the application made one.
  bool is_key_and_tenant(const Insertion& in) const {
    return in.conflict_columns.size() == 2 &&
           std::all_of(in.conflict_columns.begin(), in.conflict_columns.end(),
                       [&](const std::string& name) {
                         std::uint16_t c = table_.column(name);
                         return c == table_.key || c == table_.tenant;
                       }) &&
           in.conflict_columns[0] != in.conflict_columns[1];
  }

  // Statement triggers are on the root; so is what GENERATED ALWAYS forbids and OVERRIDING USER VALUE means.
  bool local_part_inserts_alike(const Insertion& in) const {
    bool updates = in.conflict == Insertion::Conflict::DoUpdate;
    return table_.local_part_reads_alike() &&
           std::none_of(
               table_.triggers.begin(), table_.triggers.end(),
               [&](const catalog::Trigger& t) { return !t.for_row && (t.on_insert || (t.on_update && updates)); }) &&
           std::all_of(table_.columns.begin(), table_.columns.end(),
                       [&](const catalog::Column& c) { return !c.is_identity || takes_identity(in, c); });
  }

  bool takes_identity(const Insertion& in, const catalog::Column& column) const {
    if (in.overriding == Insertion::Overriding::User) return false;
    if (!column.is_always) return true;
    for (const sql::Assignment& a : statement_.assignments)
      if (a.column == column.name && a.value.kind != sql::Value::Kind::Default) return false;
    return in.overriding == Insertion::Overriding::System || !may_be_given(in, column);
  }

  // Some row has a value of its own for the column, or there is no telling.
  bool may_be_given(const Insertion& in, const catalog::Column& column) const {
    if (in.source == Insertion::Source::DefaultValues) return false;
    if (in.source != Insertion::Source::Values && in.columns.empty()) return true;
    std::vector<std::uint16_t> columns = inserted_columns(in.columns, width(in));
    std::size_t at = position(columns, table_.column(column.name));
    if (at == columns.size()) return false;
    return in.source != Insertion::Source::Values || std::any_of(in.rows.begin(), in.rows.end(), [&](const auto& row) {
             return at >= row.size() || row[at].kind != sql::Value::Kind::Default;
           });
  }

  Fault judge_conflict(const Insertion& in) {
    if (in.conflict == Insertion::Conflict::None) return {};
    Fault fault;
    if (!in.conflict_columns.empty() || !in.conflict_constraint.empty() || !in.conflict_is_plain) {
      analysis_.fdw_cannot.conflict_target = true;
      if (local_part_inserts_alike(in)) analysis_.local_parts.push_back(target_);
      analysis_.conflict_is_key_and_tenant = !is_unique_here(in) && is_key_and_tenant(in);
      if (!in.conflict_is_plain || !(is_unique_here(in) || analysis_.conflict_is_key_and_tenant))
        fault = {Reason::ConflictTarget, table_.name};
    }
    if (Fault assigned = assignments(); !fault) fault = assigned;
    return fault;
  }

  // --- changed rows

  // The key again is no change: as an ORM writes all columns, UPDATE t SET id = 4 WHERE id = 4.
  void note_condition_keys() {
    for (const sql::Equality& e : statement_.equalities) {
      if ((e.holds_for >> target_ & 1) == 0 || e.left.column.has_value() == e.right.column.has_value()) continue;
      const sql::Equality::Side& column = e.left.column ? e.left : e.right;
      const sql::Equality::Side& value = e.left.column ? e.right : e.left;
      Names::Found found = names_.find(*column.column);
      if (found.kind == Names::Found::Kind::Column && found.place.relation == target_ &&
          found.place.column == table_.key && is_plain_value(value.value))
        analysis_.condition_keys.push_back(value.value);
    }
  }

  Fault assignments() {
    Fault fault;
    for (const sql::Assignment& a : statement_.assignments) {
      std::uint16_t c = table_.column(a.column);
      if (c == kNoColumn) return {Reason::ColumnNotFound, a.column};
      if (a.value.kind == sql::Value::Kind::Default && table_.columns[c].has_default && !fault)
        fault = {Reason::CloudDefault, a.column};
      if (a.is_own_value) continue;
      if (c == table_.key || c == table_.tenant) {
        if (is_plain_value(a.value))
          (c == table_.key ? analysis_.assigned_keys : analysis_.assigned_tenants).push_back(a.value);
        else if (!fault)
          fault = {Reason::ChangesKey, a.column};
      }
      if (const catalog::Parent* parent = table_.parent(c); parent && parent->is_declared)
        analysis_.declared_parents.push_back(c);
    }
    if (!analysis_.assigned_keys.empty()) note_condition_keys();
    return fault;
  }

  Fault deletion() {
    analysis_.may_change_keys = true;
    if (table_.changed_children.empty()) return {};
    return {Reason::Cascade, analysis_.catalog->tables()[table_.changed_children.front()].name};
  }

  Fault copying(const sql::Copying& copy) {
    constexpr std::string_view kOptions[] = {"format", "delimiter", "null",           "header",    "quote",
                                             "escape", "encoding",  "force_not_null", "force_null"};
    analysis_.may_change_keys = true;
    if (!copy.is_stream) return {Reason::CopyFrom, "a file of the server"};
    if (copy.has_where) return {Reason::CopyFrom, "WHERE"};
    for (const std::string& option : copy.options)
      if (std::find(std::begin(kOptions), std::end(kOptions), option) == std::end(kOptions))
        return {Reason::CopyFrom, option};
    std::vector<std::uint16_t> columns = inserted_columns(copy.columns, table_.columns.size());
    for (std::uint16_t c : columns)
      if (c == kNoColumn) return {Reason::ColumnNotFound, table_.name};
    if (position(columns, table_.key) == columns.size()) return {Reason::CopyFrom, "without the key"};
    for (const catalog::Parent& p : table_.parents)
      if (p.is_declared) analysis_.declared_parents.push_back(p.column);
    return check_defaults(columns);
  }

  const Names& names_;
  const sql::Statement& statement_;
  std::uint16_t target_;
  const Table& table_;
  Analysis& analysis_;
};

}  // namespace

Fault judge_write(const Names& names, const sql::Statement& statement, std::uint16_t target, Analysis& analysis) {
  return WriteJudge(names, statement, target, analysis).judge();
}

}  // namespace lokadb::route
