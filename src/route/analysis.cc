#include "route/analysis.h"

#include <algorithm>

#include "route/known.h"
#include "route/names.h"
#include "route/rights.h"
#include "route/safe.h"
#include "route/writes.h"

namespace lokadb::route {

namespace {

using sql::Statement;
using sql::StatementClass;

// What kind a statement is may say all there is to say about its way.
struct ClassRule {
  StatementClass kind;
  Reason reason;  // None: it depends
  Touch touch;    // if no relation says more
};
constexpr ClassRule kClassRules[] = {
    {StatementClass::Select, Reason::None, Touch::Nothing},
    {StatementClass::Insert, Reason::None, Touch::Nothing},
    {StatementClass::Update, Reason::None, Touch::Nothing},
    {StatementClass::Delete, Reason::None, Touch::Nothing},
    {StatementClass::Copy, Reason::None, Touch::Nothing},
    {StatementClass::Merge, Reason::Merge, Touch::Nothing},
    {StatementClass::Set, Reason::Settings, Touch::Nothing},
    {StatementClass::Show, Reason::Settings, Touch::Nothing},
    {StatementClass::Transaction, Reason::TransactionControl, Touch::Nothing},
    {StatementClass::Cursor, Reason::Cursor, Touch::Unknown},
    {StatementClass::Prepare, Reason::SqlPrepare, Touch::Unknown},
    {StatementClass::Explain, Reason::Explain, Touch::Nothing},
    {StatementClass::Lock, Reason::LockTable, Touch::Nothing},
    {StatementClass::Truncate, Reason::Truncate, Touch::Unknown},
    {StatementClass::Call, Reason::Call, Touch::Unknown},
    {StatementClass::Discard, Reason::SessionCommand, Touch::Nothing},
    {StatementClass::Notify, Reason::SessionCommand, Touch::Nothing},
    {StatementClass::Ddl, Reason::Ddl, Touch::Unknown},
    {StatementClass::Utility, Reason::Utility, Touch::Unknown},
    {StatementClass::Empty, Reason::NoLokadbTable, Touch::Nothing},
};

const ClassRule& rule_of(StatementClass kind) {
  return *std::find_if(std::begin(kClassRules), std::end(kClassRules),
                       [&](const ClassRule& r) { return r.kind == kind; });
}

bool is_write(sql::Use use) {
  return use == sql::Use::Insert || use == sql::Use::Update || use == sql::Use::Delete || use == sql::Use::CopyFrom ||
         use == sql::Use::Merge || use == sql::Use::Truncate;
}

class Analyst {
 public:
  Analyst(std::shared_ptr<const catalog::Catalog> catalog, const Statement& statement, const catalog::SearchPath& path)
      : statement_(statement), path_(path), names_(*catalog, statement, path) {
    out_.catalog = std::move(catalog);
  }

  Analysis run() {
    const ClassRule& rule = rule_of(statement_.kind);
    out_.kind = statement_.kind;
    out_.is_used_once = used_once();
    out_.touch = touch(rule);
    bind();
    find_organizations();
    out_.access = access();
    out_.sets_locally = out_.touch == Touch::Nothing && sets_locally();
    if (out_.touch != Touch::LokadbTables)
      set(rule.reason != Reason::None ? rule.reason : reason_without_tables(), first_not_understood());
    else
      judge(rule);
    if (out_.cloud_reason == Reason::None) {
      out_.p_tables = tables_argument(out_);
      out_.p_rights = rights_->argument();
    }
    return std::move(out_);
  }

 private:
  void set(Reason reason, std::string detail) {
    if (out_.cloud_reason != Reason::None || reason == Reason::None) return;
    out_.cloud_reason = reason;
    out_.detail = std::move(detail);
  }
  void set(const Fault& fault) { set(fault.reason, fault.detail); }

  std::string first_not_understood() const {
    return statement_.not_understood.empty() ? std::string() : statement_.not_understood.front();
  }

  std::vector<bool> used_once() const {
    std::vector<bool> once(statement_.parameter_uses.size());
    for (std::size_t i = 0; i < once.size(); ++i) once[i] = statement_.parameter_uses[i] == 1;
    return once;
  }

  // --- what it touches

  Touch touch(const ClassRule& rule) const {
    if (names_.has_lokadb_table()) return Touch::LokadbTables;
    if (!statement_.not_understood.empty() || names_.has_active_table() || rule.touch == Touch::Unknown)
      return Touch::Unknown;
    for (const sql::FunctionCall& call : statement_.functions)
      if (!is_harmless(call)) return Touch::Unknown;
    for (const std::string& name : statement_.operators)
      if (!is_safe_operator(name) || out_.catalog->operator_shadow(name) != catalog::Shadow::None)
        return Touch::Unknown;
    return names_.has_cloud_table() ? Touch::CloudTables : Touch::Nothing;
  }

  // One of PostgreSQL's that reads no table, though it may well depend on the session.
  bool is_harmless(const sql::FunctionCall& call) const {
    if (path_.hides_built_ins || (!call.schema.empty() && call.schema != "pg_catalog")) return false;
    if (call.schema.empty() && out_.catalog->function_shadow(call.name) != catalog::Shadow::None) return false;
    return is_safe_function(call.name) || is_safe_in_from(call.name) || !why_unsafe(call.name).empty();
  }

  Reason reason_without_tables() const {
    if (!statement_.not_understood.empty()) return Reason::NotUnderstood;
    for (const sql::FunctionCall& call : statement_.functions)
      if (statement_.relations.empty() && (call.name == "set_config" || call.name == "current_setting"))
        return Reason::Settings;
    return Reason::NoLokadbTable;
  }

  bool sets_locally() const {
    if (statement_.kind == StatementClass::Set) {
      const auto& set = statement_.setting;
      return set && set->kind == sql::Setting::Kind::Value && set->is_local && set->name.find('.') != std::string::npos;
    }
    const auto& calls = statement_.functions;
    return statement_.kind == StatementClass::Select && !calls.empty() && statement_.operators.empty() &&
           statement_.columns.empty() && std::all_of(calls.begin(), calls.end(), [](const sql::FunctionCall& call) {
             if (call.name != "set_config" || !call.runs_once || call.arguments.size() != 3) return false;
             const sql::Value& is_local = call.arguments[2];
             return is_local.kind == sql::Value::Kind::Boolean && is_local.index == 1 && is_local.cast.empty();
           });
  }

  void bind() {
    for (std::size_t i = 0; i < statement_.relations.size(); ++i) {
      const catalog::Table* table = names_.table(static_cast<std::uint16_t>(i));
      if (!table) continue;
      Bound bound;
      bound.relation = static_cast<std::uint16_t>(i);
      bound.table = table->number;
      bound.is_target = is_write(statement_.relations[i].use);
      out_.bound.push_back(std::move(bound));
      if (std::find(out_.tables.begin(), out_.tables.end(), table->number) == out_.tables.end())
        out_.tables.push_back(table->number);
    }
  }

  // Conditions tell the organization only if all of them are understood and mean what they seem to.
  void find_organizations() {
    out_.sources_are_sound = statement_.not_understood.empty() && !out_.bound.empty() && !path_.hides_built_ins &&
                             out_.catalog->casts().empty() && !is_internal(names_.fault().reason) &&
                             out_.catalog->operator_shadow("=") != catalog::Shadow::Any;
    if (out_.sources_are_sound) find_sources(names_, statement_, out_);
  }

  // There are tables under LokaDB in it that are not bound.
  static bool is_internal(Reason reason) {
    return reason == Reason::View || reason == Reason::NameHidden || reason == Reason::InternalTable;
  }

  Access access() const {
    for (const Bound& b : out_.bound)
      if (b.is_target) return Access::Write;
    return statement_.has_row_locks || statement_.kind == StatementClass::Lock ? Access::LockingRead : Access::Read;
  }

  // --- why it stays in the cloud

  void judge(const ClassRule& rule) {
    out_.fdw_cannot.skip_locked = statement_.has_skip_locked;
    out_.fdw_cannot.nowait = statement_.has_nowait;
    out_.fdw_cannot.current_of = statement_.has_current_of;
    set(rule.reason, "");
    if (path_.hides_built_ins) set(Reason::SearchPath, "");
    if (statement_.modifies_in_with) set(Reason::WritesInWith, "");
    if (statement_.has_current_of) set(Reason::CurrentOf, "");
    if (statement_.has_select_into) set(Reason::SelectInto, "");
    if (!statement_.not_understood.empty()) set(Reason::NotUnderstood, first_not_understood());
    set(names_.fault());
    if (statement_.copying && !statement_.copying->is_from) set(Reason::CopyTo, "");
    for (std::uint16_t number : out_.tables) set(table_fault(out_.catalog->tables()[number]));
    rights_.emplace(names_, statement_, out_);
    out_.has_user_types = rights_->has_user_types();
    set(find_unsafe(*out_.catalog, statement_, rights_->names_user_types()));
    set(rights_->fault());
    judge_grouping();
    judge_writes();
  }

  // GROUP BY the key gives all columns of the row; the root has no key for the cloud to know that by.
  void judge_grouping() {
    auto is_grouped = [&](const Place& place) {
      return std::any_of(statement_.group_by.begin(), statement_.group_by.end(), [&](const sql::Column& c) {
        Names::Found found = names_.find(c);
        return found.kind == Names::Found::Kind::Column && found.place == place;
      });
    };
    for (const Bound& b : out_.bound) {
      if (!groups_by_key_of(b)) continue;
      for (const sql::ColumnUse& use : statement_.columns) {
        if (!use.is_bare) continue;
        Names::Found found = names_.find(use.column);
        bool is_ours = found.kind == Names::Found::Kind::Column
                           ? found.place.relation == b.relation
                           : use.column.name == "*" && use.column.relation == b.relation;
        if (!is_ours || (found.kind == Names::Found::Kind::Column && is_grouped(found.place))) continue;
        out_.fdw_cannot.group_by_key = true;
        if (names_.table(b.relation)->local_part_reads_alike()) out_.local_parts.push_back(b.relation);
        break;
      }
    }
  }

  // Of the table itself: what a subquery gives has no key that PostgreSQL would know of.
  bool groups_by_key_of(const Bound& b) const {
    const Place key{b.relation, b.relation, names_.table(b.relation)->key};
    return std::any_of(statement_.group_by.begin(), statement_.group_by.end(), [&](const sql::Column& c) {
      if (c.relation == sql::kNone ? !is_in_scope(b.relation, c.scope) : c.relation != b.relation) return false;
      Names::Found found = names_.find(c);
      return found.kind == Names::Found::Kind::Column && found.place == key;
    });
  }

  bool is_in_scope(std::uint16_t relation, std::uint16_t scope) const {
    if (scope >= statement_.scopes.size()) return false;
    const auto& all = statement_.scopes[scope].relations;
    return std::find(all.begin(), all.end(), relation) != all.end();
  }

  void judge_writes() {
    if (statement_.modifies_in_with) return;  // their details are not the statement's own
    std::size_t targets = 0;
    for (std::size_t i = 0; i < out_.bound.size(); ++i) {
      if (!out_.bound[i].is_target || rule_of(statement_.kind).reason != Reason::None) continue;
      if (++targets > 1) return set(Reason::WritesInWith, "");
      set(judge_write(names_, statement_, out_.bound[i].relation, out_));
    }
  }

  const Statement& statement_;
  const catalog::SearchPath& path_;
  Names names_;
  std::optional<Rights> rights_;
  Analysis out_;
};

}  // namespace

Analysis analyse(std::shared_ptr<const catalog::Catalog> catalog, const Statement& statement,
                 const catalog::SearchPath& path) {
  return Analyst(std::move(catalog), statement, path).run();
}

}  // namespace lokadb::route
