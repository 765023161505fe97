// How many connections to the cloud the gates of one organization may have at a time. While it is paused its gates wait
// in the cloud, for seconds; without a limit they would soon have the whole pool, and clients of other organizations
// would wait, too. So they may have half of it, and two if one of them has been waiting already. Who gets no place
// waits here, with no connection. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lokadb {

class ClientSession;
class Pool;

class Gates {
 public:
  // What a session has that may ask its gate: given back by leave().
  struct Place {
    Pool* pool = nullptr;
    std::string organization;
    std::int64_t since = 0;  // microseconds, monotonic
    explicit operator bool() const { return pool != nullptr; }
  };
  static constexpr std::int64_t kSlow = 50'000;            // microseconds; a gate that takes longer waits for a pause
  static constexpr std::int64_t kLongestWait = 5'000'000;  // as lokadb.enter waits itself

  enum class Answer : std::uint8_t { Entered, NotNow, Waits };
  // Entered: `place` is the session's. waits: if there is no room now, the session is called (Routing::gate_has_news)
  // when there is, or when it has waited in vain.
  Answer enter(Pool& pool, int pool_size, std::string_view organization, ClientSession& session, bool waits,
               std::int64_t now, Place& place);
  // Whom to call now. `is_paused`: the gate said so, after it had waited for as long as it may.
  struct Called {
    ClientSession* session;
    bool has_place;  // else it has waited in vain
    Place place;
  };
  std::vector<Called> leave(Place& place, int pool_size, bool is_paused, std::int64_t now);
  // The session waits no more. False: it has been called already, or did not wait.
  bool forget(ClientSession& session);

  static int limit(int pool_size, bool is_slow);

 private:
  struct Waiter {
    ClientSession* session;
    std::int64_t since;
  };
  struct Organization {
    std::vector<std::int64_t> inside;  // since when
    std::list<Waiter> waiters;         // in the order of their coming
    bool is_slow(std::int64_t now) const;
  };
  using Key = std::pair<Pool*, std::string>;

  std::mutex mutex_;
  std::map<Key, Organization> organizations_;  // those with somebody inside or waiting
};

}  // namespace lokadb
