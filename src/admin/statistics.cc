#include "admin/statistics.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "pool/pooler.h"

namespace lokadb {

namespace {

constexpr std::size_t index_of(Counter PoolCounters::*member) {
  for (std::size_t i = 0; i < kCounterCount; ++i)
    if (kCounters[i].member == member) return i;
  return kCounterCount;
}
constexpr std::size_t kXacts = index_of(&PoolCounters::xact_count);
constexpr std::size_t kQueries = index_of(&PoolCounters::query_count);
constexpr std::size_t kAssignments = index_of(&PoolCounters::server_assignment_count);

// What was counted between a mark and now, over how long: a pool that is younger had counted nothing at the mark.
struct Span {
  CounterValues counted;
  std::int64_t micros = 0;
};

CounterValues since_mark(const Pool& pool) {
  CounterValues sum = pool.sum();
  for (std::size_t i = 0; i < kCounterCount; ++i) sum.v[i] -= pool.older_mark.v[i];
  return sum;
}

std::uint64_t divide(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : a / b; }

CounterValues averages_of(const Span& span) {
  CounterValues out;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    std::uint64_t n = span.counted.v[i];
    switch (kCounters[i].per) {
      case AveragePer::Second:
        out.v[i] = divide(n * 1000000, static_cast<std::uint64_t>(span.micros));
        break;
      case AveragePer::Transaction:
        out.v[i] = divide(n, span.counted.v[kXacts]);
        break;
      case AveragePer::Query:
        out.v[i] = divide(n, span.counted.v[kQueries]);
        break;
      case AveragePer::Assignment:
        out.v[i] = divide(n, span.counted.v[kAssignments]);
        break;
    }
  }
  return out;
}

}  // namespace

std::map<std::string, PoolFigures> figures_by_database(Pooler& pooler) {
  std::map<std::string, Span> spans;
  std::map<std::string, PoolFigures> out;
  const std::int64_t micros = now_us() - pooler.older_mark_time;
  pooler.for_each_pool([&](Pool& p) {
    spans[p.database.name].counted.add(since_mark(p));
    out[p.database.name].totals.add(p.sum());
  });
  for (auto& [name, figures] : out) {
    spans[name].micros = micros;
    figures.averages = averages_of(spans[name]);
  }
  return out;
}

PoolFigures figures_of_all(Pooler& pooler) {
  Span span;
  span.micros = now_us() - pooler.older_mark_time;
  PoolFigures all;
  pooler.for_each_pool([&](Pool& p) {
    span.counted.add(since_mark(p));
    all.totals.add(p.sum());
  });
  all.averages = averages_of(span);
  return all;
}

std::string stats_text(Pooler& pooler, const char* microseconds) {
  CounterValues a = figures_of_all(pooler).averages;
  auto v = [&a](Counter PoolCounters::*member) { return static_cast<unsigned long long>(a.v[index_of(member)]); };
  return format(
      "stats: %llu xacts/s, %llu queries/s, %llu client parses/s, %llu server parses/s, %llu binds/s, "
      "%llu client logins/s, in %llu B/s, out %llu B/s, xact %llu %s, query %llu %s, wait %llu %s",
      v(&PoolCounters::xact_count), v(&PoolCounters::query_count), v(&PoolCounters::client_parse_count),
      v(&PoolCounters::server_parse_count), v(&PoolCounters::bind_count), v(&PoolCounters::client_login_count),
      v(&PoolCounters::bytes_received), v(&PoolCounters::bytes_sent), v(&PoolCounters::xact_time), microseconds,
      v(&PoolCounters::query_time), microseconds, v(&PoolCounters::wait_time), microseconds);
}

void end_stats_period(Pooler& pooler) {
  pooler.older_mark_time = pooler.newer_mark_time;
  pooler.newer_mark_time = now_us();
  pooler.for_each_pool([](Pool& p) {
    p.older_mark = p.newer_mark;
    p.newer_mark = p.sum();
  });
  if (pooler.options().log_stats) log_line(LogLevel::Log, "%s", stats_text(pooler).c_str());
}

}  // namespace lokadb
