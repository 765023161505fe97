// Totals and averages of the pools' counters, and the line in the log each stats_period. Main thread, world stopped
// (or, for the periodic work, the main thread alone: the counters themselves may be read at any time).
#pragma once

#include <map>
#include <string>

#include "pool/stats.h"

namespace lokadb {

class Pooler;

struct PoolFigures {
  CounterValues totals;
  CounterValues averages;  // over the time since the mark before the last
};

std::map<std::string, PoolFigures> figures_by_database(Pooler& pooler);
PoolFigures figures_of_all(Pooler& pooler);

// A period has passed: sets new marks, and logs the stats line if log_stats is on.
void end_stats_period(Pooler& pooler);
// "A xacts/s, B queries/s, ..." over the last period.
std::string stats_text(Pooler& pooler, const char* microseconds = "us");

// The columns of SHOW STATS, STATS_TOTALS or STATS_AVERAGES.
std::string stats_columns(std::string_view show);

}  // namespace lokadb
