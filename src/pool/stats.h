// Counters of a pool, one block per worker: each block has one writer, so counting costs no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace lokadb {

// Written by one thread, read by any.
class Counter {
 public:
  void add(std::uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct alignas(64) PoolCounters {
  Counter server_assignment_count, xact_count, query_count, bytes_received, bytes_sent, xact_time, query_time,
      wait_time, client_parse_count, server_parse_count, bind_count, client_login_count;
};

// What an average is taken per.
enum class AveragePer : std::uint8_t { Second, Transaction, Query, Assignment };

// One row per counter: the names of SHOW STATS (total_X, avg_Y), STATS_TOTALS, STATS_AVERAGES and SHOW TOTALS.
struct CounterSpec {
  Counter PoolCounters::*member;
  std::string_view total;      // SHOW STATS: "total_" + this; also STATS_TOTALS
  std::string_view average;    // SHOW STATS: "avg_" + this
  std::string_view plain;      // STATS_TOTALS
  std::string_view averages;   // STATS_AVERAGES
  std::string_view in_totals;  // SHOW TOTALS: total_/avg_ + this
  AveragePer per;
};

inline constexpr CounterSpec kCounters[] = {
    {&PoolCounters::server_assignment_count, "server_assignment_count", "server_assignment_count",
     "server_assignment_count", "server_assignment_count", "server_assignment_count", AveragePer::Second},
    {&PoolCounters::xact_count, "xact_count", "xact_count", "xact_count", "xact_count", "xact_count",
     AveragePer::Second},
    {&PoolCounters::query_count, "query_count", "query_count", "query_count", "query_count", "query_count",
     AveragePer::Second},
    {&PoolCounters::bytes_received, "received", "recv", "bytes_received", "bytes_received", "client_bytes",
     AveragePer::Second},
    {&PoolCounters::bytes_sent, "sent", "sent", "bytes_sent", "bytes_sent", "server_bytes", AveragePer::Second},
    {&PoolCounters::xact_time, "xact_time", "xact_time", "xact_time", "xact_time", "xact_time",
     AveragePer::Transaction},
    {&PoolCounters::query_time, "query_time", "query_time", "query_time", "query_time", "query_time",
     AveragePer::Query},
    {&PoolCounters::wait_time, "wait_time", "wait_time", "wait_time", "wait_time", "wait_time", AveragePer::Assignment},
    {&PoolCounters::client_parse_count, "client_parse_count", "client_parse_count", "client_parse_count",
     "avg_client_parse_count", "ps_client_parse_count", AveragePer::Second},
    {&PoolCounters::server_parse_count, "server_parse_count", "server_parse_count", "server_parse_count",
     "avg_server_parse_count", "ps_server_parse_count", AveragePer::Second},
    {&PoolCounters::bind_count, "bind_count", "bind_count", "bind_count", "avg_bind_count", "ps_bind_count",
     AveragePer::Second},
    {&PoolCounters::client_login_count, "client_login_count", "client_login_count", "client_login_count",
     "avg_client_login_count", "client_login_count", AveragePer::Second},
};
inline constexpr std::size_t kCounterCount = std::size(kCounters);
static_assert(sizeof(PoolCounters) >= kCounterCount * sizeof(Counter) &&
                  sizeof(PoolCounters) < kCounterCount * sizeof(Counter) + 64,
              "a counter has no row");

// A sum over workers at one moment, in the order of kCounters.
struct CounterValues {
  std::uint64_t v[kCounterCount] = {};
  void add(const PoolCounters& block) {
    for (std::size_t i = 0; i < kCounterCount; ++i) v[i] += (block.*kCounters[i].member).get();
  }
  void add(const CounterValues& other) {
    for (std::size_t i = 0; i < kCounterCount; ++i) v[i] += other.v[i];
  }
};

}  // namespace lokadb
