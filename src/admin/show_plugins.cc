// SHOW PLUGINS; SHOW LOKADB_ROUTES and LOKADB_REASONS: what plugins decided, and all that they may say; SHOW
// LOKADB_SESSIONS; and commands of the plugins' own.
#include <algorithm>

#include "admin/show.h"
#include "base/text.h"
#include "plugin/chain.h"
#include "plugin/plugin.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/routing.h"

namespace lokadb {

namespace {

// "id=count, id=count": the reasons that verdicts have had so far.
std::string reasons_text(const PluginFigures& figures) {
  std::string all;
  for (const auto& reason : figures.reasons) {
    if (reason.count == 0) continue;
    all.append(all.empty() ? "" : ", ").append(reason.id).append("=").append(std::to_string(reason.count));
  }
  return all;
}

}  // namespace

void show_plugins(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures()) {
    auto& row = table.add_row();
    row.text(f.name).text(f.version);
    row.text(std::to_string(f.abi_major) + "." + std::to_string(f.abi_minor)).text(f.library).number(f.is_required);
    for (std::uint64_t n : {f.calls, f.refused, f.failed, f.slow, f.total_us, f.max_us})
      row.number(static_cast<std::int64_t>(n));
    row.text(reasons_text(f));
  }
}

void show_routes(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures())
    for (const auto& reason : f.reasons)
      if (reason.count > 0)
        table.add_row().text(f.name).text(reason.id).number(static_cast<std::int64_t>(reason.count)).text(reason.text);
}

void show_reasons(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures())
    for (const auto& reason : f.reasons) table.add_row().text(f.name).text(reason.id).text(reason.text);
}

// Only sessions that plugins look at; those of the console are none of them.
void show_plugin_sessions(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  pooler.for_each_client([&](ClientSession& client) {
    if (client.routing() == nullptr || client.pool() == nullptr) return;
    for (const auto& state : pooler.plugins->session_states(client.routing()->slots())) {
      auto& row = table.add_row();
      row.text(client.pool()->user.name).text(client.pool()->database.name);
      row.text(client.peer().is_unix() ? "unix" : ip_text(client.peer())).number(client.peer_port());
      row.text(format("%p", static_cast<void*>(&client))).number(static_cast<std::int64_t>(client.id));
      row.text(state.plugin).text(state.is_off ? "no" : "yes");
      row.text(state.reason != nullptr ? state.reason->id : "").text(state.reason != nullptr ? state.reason->text : "");
      row.text(state.details);
    }
  });
}

// ------------------------------------------------------------------ commands of plugins

std::optional<std::string> columns_of_plugin_show(Pooler& pooler, std::string_view name) {
  if (pooler.plugins == nullptr) return std::nullopt;
  for (const auto& show : pooler.plugins->shows())
    if (iequals(show.name, name)) return std::string(show.columns);
  return std::nullopt;
}

// A plugin whose command of that name has other columns is left out: those of the first count.
Result<Done> fill_plugin_show(Pooler& pooler, std::string_view name, ResultTable& table) {
  auto columns = columns_of_plugin_show(pooler, name);
  for (const auto& show : pooler.plugins->shows()) {
    if (!iequals(show.name, name) || show.columns != columns) continue;
    auto rows = pooler.plugins->rows_of(show);
    if (!rows) return std::move(rows.error());
    for (const auto& cells : *rows) {
      auto& row = table.add_row();
      for (const auto& cell : cells) row.maybe(cell);
    }
  }
  return Done();
}

std::vector<std::string> names_of_plugin_shows(Pooler& pooler) {
  std::vector<std::string> names;
  if (pooler.plugins == nullptr) return names;
  for (const auto& show : pooler.plugins->shows())
    if (std::find(names.begin(), names.end(), show.name) == names.end()) names.emplace_back(show.name);
  return names;
}

}  // namespace lokadb
