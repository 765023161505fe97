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

// What was counted between a mark and now, over how long.
struct Span {
  CounterValues counted;
  std::int64_t micros = 0;
};

Span since_mark(const Pool& pool, std::int64_t now) {
  Span span;
  CounterValues sum = pool.sum();
  for (std::size_t i = 0; i < kCounterCount; ++i) span.counted.v[i] = sum.v[i] - pool.older_mark.v[i];
  span.micros = now - pool.older_mark_time;
  return span;
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

void add(Span& to, const Span& more) {
  to.counted.add(more.counted);
  to.micros = std::max(to.micros, more.micros);
}

}  // namespace

std::map<std::string, PoolFigures> figures_by_database(Pooler& pooler) {
  std::map<std::string, Span> spans;
  std::map<std::string, PoolFigures> out;
  std::int64_t now = now_us();
  pooler.for_each_pool([&](Pool& p) {
    add(spans[p.database.name], since_mark(p, now));
    out[p.database.name].totals.add(p.sum());
  });
  for (auto& [name, figures] : out) figures.averages = averages_of(spans[name]);
  return out;
}

PoolFigures figures_of_all(Pooler& pooler) {
  Span span;
  PoolFigures all;
  std::int64_t now = now_us();
  pooler.for_each_pool([&](Pool& p) {
    add(span, since_mark(p, now));
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
  std::int64_t now = now_us();
  pooler.for_each_pool([now](Pool& p) {
    p.older_mark = p.newer_mark;
    p.older_mark_time = p.newer_mark_time;
    p.newer_mark = p.sum();
    p.newer_mark_time = now;
  });
  if (pooler.options().log_stats) log_line(LogLevel::Log, "%s", stats_text(pooler).c_str());
}

}  // namespace lokadb
