#include "role_facts.h"

#include "router.h"
#include "sql/rewrite.h"

namespace lokadb::router {

namespace {

// Settings that change what a statement gives or how long it may take. Those of the first group follow a client from
// server to server anyway; here they are what a server begins with.
constexpr std::string_view kSettings[] = {"TimeZone",
                                          "DateStyle",
                                          "IntervalStyle",
                                          "standard_conforming_strings",  //
                                          "extra_float_digits",
                                          "bytea_output",
                                          "statement_timeout",
                                          "lock_timeout",
                                          "idle_in_transaction_session_timeout",
                                          "client_min_messages",
                                          "default_transaction_isolation",
                                          "default_transaction_read_only",
                                          "default_transaction_deferrable",
                                          "array_nulls",
                                          "transform_null_equals",
                                          "xmloption",
                                          "xmlbinary",
                                          "timezone_abbreviations",
                                          "default_text_search_config",
                                          "lc_monetary",
                                          "lc_numeric",
                                          "lc_time",
                                          "backslash_quote",
                                          "escape_string_warning",
                                          "quote_all_identifiers"};
// In the place of a setting's name: tables of which this holds. No settings have such names.
constexpr std::string_view kReadable = "may read", kGuarded = "is guarded";

void append(std::string& list, std::string_view value) {
  list += (list.empty() ? "" : ",") + sql::quoted_literal(value);
}

bool take_row(lokadb_batch* batch, std::uint32_t step, std::uint32_t row, RoleFacts& found) {
  lokadb_cell name{}, value{}, at_start{};
  if (host->step_cell(batch, step, row, 0, &name) != LOKADB_OK ||
      host->step_cell(batch, step, row, 1, &value) != LOKADB_OK ||
      host->step_cell(batch, step, row, 2, &at_start) != LOKADB_OK)
    return false;
  if (view(name.value) == kReadable) {
    found.readable.emplace_back(view(value.value));
  } else if (view(name.value) == kGuarded) {
    found.guarded.emplace_back(view(value.value));
  } else {
    // The server has been given what this client has asked for; other clients of the role have not asked for it.
    bool is_clients = host->own_setting(batch, name.value).data != nullptr && at_start.is_null == 0;
    found.settings.emplace_back(view(name.value), view(is_clients ? at_start.value : value.value));
  }
  return true;
}

}  // namespace

// A row for each setting (name, value, and what RESET would give), and behind them one for each table and what holds.
std::string role_facts_query(const catalog::Catalog& catalog) {
  std::string names, tables;
  for (std::string_view name : kSettings) append(names, name);
  append(names, kSearchPath);
  for (const catalog::Table& table : catalog.tables()) append(tables, table.quoted);
  // pg_settings has the value in force; a list such as search_path is as current_setting has it.
  std::string sql =
      "SELECT s.name, pg_catalog.current_setting(s.name), s.reset_val FROM pg_catalog.pg_settings s WHERE s.name IN (" +
      names + ")";
  if (!tables.empty())
    sql += " UNION ALL SELECT w.what, t.name, NULL FROM pg_catalog.unnest(ARRAY[" + tables +
           "]) t(name), LATERAL (VALUES ('" + std::string(kReadable) +
           "', pg_catalog.has_table_privilege(pg_catalog.to_regclass(t.name), 'SELECT')), ('" + std::string(kGuarded) +
           "', pg_catalog.row_security_active(pg_catalog.to_regclass(t.name)::pg_catalog.oid))) w(what, holds) "
           "WHERE w.holds";
  return sql;
}

std::shared_ptr<RoleFacts> role_facts(lokadb_batch* batch, std::uint32_t step) {
  std::uint32_t rows = host->step_rows(batch, step);
  if (rows == UINT32_MAX) return nullptr;
  auto found = std::make_shared<RoleFacts>();
  for (std::uint32_t row = 0; row < rows; ++row)
    if (!take_row(batch, step, row, *found)) return nullptr;
  return found;
}

RoleSettings::Ptr RoleSettings::last(std::string_view database, std::string_view role) const {
  std::lock_guard lock(mutex_);
  auto it = known_.find(std::pair(database, role));
  return it != known_.end() ? it->second.facts : nullptr;
}

RoleSettings::Ptr RoleSettings::find(std::string_view database, std::string_view role, std::uint64_t servers) const {
  std::lock_guard lock(mutex_);
  auto it = known_.find(std::pair(database, role));
  return it != known_.end() && it->second.servers == servers ? it->second.facts : nullptr;
}

RoleSettings::Ptr RoleSettings::put(std::string_view database, std::string_view role, std::uint64_t servers,
                                    RoleFacts facts) {
  std::lock_guard lock(mutex_);
  Known& known = known_[{std::string(database), std::string(role)}];
  known.servers = servers;
  if (known.facts == nullptr || !(*known.facts == facts))
    known.facts = std::make_shared<const RoleFacts>(std::move(facts));
  return known.facts;
}

void RoleSettings::outdate(std::string_view database) {
  std::lock_guard lock(mutex_);
  for (auto& [key, known] : known_)
    if (key.first == database) known.servers = std::nullopt;
}

}  // namespace lokadb::router
