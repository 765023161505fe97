#include "pool/gates.h"

#include <algorithm>
#include <utility>

namespace lokadb {

bool Gates::Organization::is_slow(std::int64_t now) const {
  return std::any_of(inside.begin(), inside.end(), [now](std::int64_t since) { return now - since > kSlow; });
}

int Gates::limit(int pool_size, bool is_slow) {
  if (pool_size <= 0) return is_slow ? 2 : 1'000'000;  // a pool without a limit
  int half = std::max(1, pool_size / 2);
  return is_slow ? std::min(2, half) : half;
}

Gates::Answer Gates::enter(Pool& pool, int pool_size, std::string_view name, ClientSession& session, bool waits,
                           std::int64_t now, Place& place) {
  std::lock_guard guard(mutex_);
  auto it = organizations_.try_emplace({&pool, std::string(name)}).first;
  Organization& organization = it->second;
  bool has_room = organization.waiters.empty() &&
                  static_cast<int>(organization.inside.size()) < limit(pool_size, organization.is_slow(now));
  if (has_room) {
    organization.inside.push_back(now);
    place = {&pool, std::string(name), now};
    return Answer::Entered;
  }
  if (!waits) return Answer::NotNow;
  organization.waiters.push_back({&session, now});
  return Answer::Waits;
}

std::vector<Gates::Called> Gates::leave(Place& place, int pool_size, bool is_paused, std::int64_t now) {
  std::vector<Called> called;
  std::lock_guard guard(mutex_);
  auto it = organizations_.find({place.pool, place.organization});
  Place left = std::exchange(place, {});
  if (it == organizations_.end()) return called;
  Organization& o = it->second;
  if (auto own = std::find(o.inside.begin(), o.inside.end(), left.since); own != o.inside.end()) o.inside.erase(own);
  while (is_paused && !o.waiters.empty() && now - o.waiters.front().since >= kLongestWait - kSlow) {
    called.push_back({o.waiters.front().session, false, {}});
    o.waiters.pop_front();
  }
  while (!o.waiters.empty() && static_cast<int>(o.inside.size()) < limit(pool_size, o.is_slow(now))) {
    o.inside.push_back(now);
    called.push_back({o.waiters.front().session, true, {left.pool, left.organization, now}});
    o.waiters.pop_front();
  }
  if (o.inside.empty() && o.waiters.empty()) organizations_.erase(it);
  return called;
}

bool Gates::forget(ClientSession& session) {
  std::lock_guard guard(mutex_);
  for (auto it = organizations_.begin(); it != organizations_.end(); ++it) {
    Organization& o = it->second;
    if (o.waiters.remove_if([&session](const Waiter& w) { return w.session == &session; }) == 0) continue;
    if (o.inside.empty() && o.waiters.empty()) organizations_.erase(it);
    return true;
  }
  return false;
}

}  // namespace lokadb
