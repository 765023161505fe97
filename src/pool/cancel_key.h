// The keys clients get for their cancel requests: random, but for marks that let processes sharing a port ([peers])
// pass a request on to the one that gave out its key. The marks are PgBouncer's, so that both may be peers. Pure.
#pragma once

#include <array>
#include <cstddef>

namespace lokadb {

using CancelKey = std::array<std::byte, 8>;

inline constexpr int kMostHops = 3;

// peer_id 0: a process without peers, no marks.
CancelKey make_cancel_key(int peer_id);

// Of a key that has marks.
int peer_of(const CancelKey& key);
int hops_left(const CancelKey& key);
CancelKey one_hop_less(const CancelKey& key);

// In the time it takes for any other key. with_marks: whatever way the request has come.
bool is_same_key(const CancelKey& a, const CancelKey& b, bool with_marks);

}  // namespace lokadb
