// Time limits of server connections, looked at three times a second.
#include "base/log.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

const char* ServerConnection::reason_to_close(std::int64_t now) const {
  if (is_obsolete()) return "close_needed";
  if (extra_ready_ > 0) return "state of the connection is not known";
  if (residue_ != residue::kNone && pool.settings.mode != PoolMode::Session)
    return "session state would reach another client";
  std::int64_t lifetime = pool.settings.server_lifetime;
  if (lifetime == 0) return "server lifetime over";
  if (now - born > lifetime) {
    // Not all at once: as many as a pool holds take a whole lifetime to go.
    std::int64_t gap = pool.settings.size > 0 ? lifetime / pool.settings.size : 0;
    if (pool.last_lifetime_close == 0 || now - pool.last_lifetime_close >= gap) return "server lifetime over";
  }
  int most = pool.settings.size + pool.settings.reserve;
  if (pool.settings.size > 0 && pool.server_count > most) return "too many servers in the pool";
  return nullptr;
}

void ServerConnection::check_timeouts(std::int64_t now) {
  switch (state()) {
    case ServerState::Login: {
      std::int64_t limit = pooler.options().server_connect_timeout.count();
      if (limit == 0 || now - born <= limit) return;
      bool connecting = login_step_ == LoginStep::Resolving || login_step_ == LoginStep::Connecting;
      return could_not_connect(connecting ? "connect failed" : "connect timeout");
    }
    case ServerState::Testing: {
      std::int64_t limit = pooler.options().server_connect_timeout.count();
      if (step_ == Step::Greeting && limit != 0 && now - born > limit) greeting_failed();
      return;
    }
    case ServerState::Idle:
      return check_idle(now);
    case ServerState::Active:
      return check_active(now);
    default:
      return;
  }
}

void ServerConnection::check_idle(std::int64_t now) {
  const Options& o = pooler.options();
  // Once in each idleness: an end that came together with the last answer was not told apart from it.
  if (looked_twice_at_ != idle_since) {
    looked_twice_at_ = idle_since;
    if (stream_.has_input_waiting()) {
      stream_.assume_readable();
      worker_->loop.resume_later(*this);
      return;
    }
  }
  const char* reason = nullptr;
  {
    std::lock_guard guard(pooler.lock);
    if (!ListHook<IdleTag>::is_linked()) return;  // on its way to somebody
    if (pooler.pause_mode == PauseMode::Paused || pool.database.is_paused)
      reason = "pause mode";
    else if (is_obsolete())
      reason = "database configuration changed";
    else
      reason = reason_to_close(now);
    std::int64_t idle_limit = o.server_idle_timeout.count();
    if (reason == nullptr && idle_limit > 0 && now - idle_since > idle_limit &&
        pool.server_count > pool.settings.min_size)
      reason = "server idle timeout";
    if (reason == nullptr) return;
    if (reason == std::string_view("server lifetime over")) pool.last_lifetime_close = now;
    pool.idle.remove(this);
  }
  close(reason);
}

void ServerConnection::check_active(std::int64_t now) {
  if (client_ == nullptr) return;
  const PoolSettings& s = pool.settings;
  auto due = [now](std::int64_t since, std::int64_t limit) { return since != 0 && limit > 0 && now - since > limit; };
  if (!copies_both_ways_ && due(query_started, s.query_timeout)) return close("query timeout");
  bool idle_in_transaction = !is_busy_ && xact_started != 0;
  if (idle_in_transaction && due(last_answer, s.idle_transaction_timeout)) return close("idle transaction timeout");
  if (!copies_both_ways_ && due(xact_started, s.transaction_timeout)) return close("transaction timeout");
  if (is_obsolete() && is_dedicated_) return close("database configuration changed");
  if (is_obsolete() && pooler.options().server_fast_close && !is_busy_ && status_ == 'I')
    close("database configuration changed");
}

}  // namespace lokadb
