// SHOW STATS, STATS_TOTALS, STATS_AVERAGES and TOTALS, all made from the table of counters.
#include "admin/show.h"
#include "admin/statistics.h"
#include "pool/pooler.h"

namespace lokadb {

namespace {

enum class Part { Totals, Averages };

void add_values(ResultTable::Row& row, const PoolFigures& figures, Part part) {
  for (std::size_t i = 0; i < kCounterCount; ++i)
    row.number(static_cast<std::int64_t>(part == Part::Totals ? figures.totals.v[i] : figures.averages.v[i]));
}

void fill(Pooler& pooler, ResultTable& table, bool totals, bool averages) {
  for (const auto& [name, figures] : figures_by_database(pooler)) {
    auto& row = table.add_row();
    row.text(name);
    if (totals) add_values(row, figures, Part::Totals);
    if (averages) add_values(row, figures, Part::Averages);
  }
}

}  // namespace

std::string stats_columns(std::string_view show) {
  std::string columns = "database t";
  for (const auto& c : kCounters) {
    if (show == "stats") columns += ", total_" + std::string(c.total) + " n";
    if (show == "stats_totals") columns += ", " + std::string(c.plain) + " n";
    if (show == "stats_averages") columns += ", " + std::string(c.averages) + " n";
  }
  if (show == "stats")
    for (const auto& c : kCounters) columns += ", avg_" + std::string(c.average) + " n";
  return columns;
}

void show_stats(Pooler& pooler, ResultTable& table) { fill(pooler, table, true, true); }
void show_stats_totals(Pooler& pooler, ResultTable& table) { fill(pooler, table, true, false); }
void show_stats_averages(Pooler& pooler, ResultTable& table) { fill(pooler, table, false, true); }

void show_totals(Pooler& pooler, ResultTable& table) {
  PoolFigures all = figures_of_all(pooler);
  for (std::size_t i = 0; i < kCounterCount; ++i)
    table.add_row()
        .text("total_" + std::string(kCounters[i].in_totals))
        .number(static_cast<std::int64_t>(all.totals.v[i]));
  for (std::size_t i = 0; i < kCounterCount; ++i)
    table.add_row()
        .text("avg_" + std::string(kCounters[i].in_totals))
        .number(static_cast<std::int64_t>(all.averages.v[i]));
}

}  // namespace lokadb
