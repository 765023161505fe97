// Time as the proxy counts it: whole microseconds of the monotonic clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace lokadb {

using Micros = std::chrono::microseconds;

// Microseconds of CLOCK_MONOTONIC; 0 is used by callers as "never".
inline std::int64_t now_us() {
  return std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Microseconds since 1970 (UTC), for what people read.
inline std::int64_t wall_us() {
  return std::chrono::duration_cast<Micros>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace lokadb
