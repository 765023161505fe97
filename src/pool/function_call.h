// What a FunctionCall message calls.
#pragma once

#include <algorithm>
#include <iterator>

#include "base/bytes.h"

namespace lokadb {

// One of PostgreSQL's functions on large objects (pg_proc.dat), for which drivers use the message. They only do
// something inside a transaction, and leave nothing behind.
inline bool is_large_object_call(Bytes body) {
  constexpr std::uint32_t kCalls[] = {715, 764, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172};
  return body.size() >= 4 && std::find(std::begin(kCalls), std::end(kCalls), load_u32(body.data())) != std::end(kCalls);
}

}  // namespace lokadb
