// The SHOW commands of the console: one row each, with its columns and the function that fills it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/result_table.h"
#include "base/result.h"

namespace lokadb {

class Pooler;

struct ShowSpec {
  std::string_view name;
  std::string_view columns;
  void (*fill)(Pooler& pooler, ResultTable& table);  // main thread, world stopped
  bool admin_only;
};

std::span<const ShowSpec> show_specs();
// Null: there is no such SHOW. Without case.
const ShowSpec* find_show(std::string_view name);

// SHOW commands of plugins (show_plugins.cc): columns, or nullopt; the rows of all plugins that have it.
std::optional<std::string> columns_of_plugin_show(Pooler& pooler, std::string_view name);
Result<Done> fill_plugin_show(Pooler& pooler, std::string_view name, ResultTable& table);
std::vector<std::string> names_of_plugin_shows(Pooler& pooler);

// Those about single connections (show_connections.cc), pools and their owners (show_pools.cc), counters
// (show_stats.cc), plugins (show_plugins.cc), and the rest (show.cc).
void show_clients(Pooler&, ResultTable&);
void show_servers(Pooler&, ResultTable&);
void show_sockets(Pooler&, ResultTable&);
void show_active_sockets(Pooler&, ResultTable&);
void show_pools(Pooler&, ResultTable&);
void show_databases(Pooler&, ResultTable&);
void show_users(Pooler&, ResultTable&);
void show_lists(Pooler&, ResultTable&);
void show_plugins(Pooler&, ResultTable&);
void show_reasons(Pooler&, ResultTable&);
void show_plugin_sessions(Pooler&, ResultTable&);
void show_routes(Pooler&, ResultTable&);
void show_stats(Pooler&, ResultTable&);
void show_stats_totals(Pooler&, ResultTable&);
void show_stats_averages(Pooler&, ResultTable&);
void show_totals(Pooler&, ResultTable&);

// Compatible version numbers: what PgBouncer's own tools and monitors look at.
inline constexpr std::string_view kPgBouncerVersion = "1.25.2";
// The whole line of --version and SHOW VERSION; static storage.
std::string_view version_text();
// Our own name and version; SHOW VERSION tells it in a notice, since its row must be as PgBouncer's.
std::string_view own_version_text();

}  // namespace lokadb
