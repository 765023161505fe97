// Time limits of client sessions, looked at three times a second.
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::int64_t kLeaveInPeace = 2'000'000;  // microseconds
}

void ClientSession::check_timeouts(std::int64_t now) {
  const Options& o = pooler.options();
  auto due = [now](std::int64_t since, std::int64_t limit) { return limit > 0 && now - since > limit; };
  switch (state_) {
    case ClientState::Startup:
    case ClientState::Login:
    case ClientState::Checking:
      if (due(born, o.client_login_timeout.count())) close(fatal("client_login_timeout"));
      return;
    case ClientState::UserWanted:
    case ClientState::UserAsked:
      if (due(born, o.client_login_timeout.count())) return close(fatal("client_login_timeout"));
      if (wait_started != 0 && due(wait_started, pool_->settings.query_wait_timeout))
        close(fatal("query_wait_timeout"));
      return;
    case ClientState::Welcome:
      if (due(born, o.client_login_timeout.count())) return close(fatal("client_login_timeout (server down)"));
      if (due(wait_started, pool_->settings.query_wait_timeout)) close(fatal("query_wait_timeout"));
      return;
    case ClientState::Waiting:
      if (due(wait_started, query_wait_limit())) return close(fatal("query_wait_timeout"));
      if (due(wait_started, pool_->settings.query_timeout)) return close(fatal("query_timeout"));
      if (!wait_was_notified && due(wait_started, o.query_wait_notify * std::int64_t{1000000})) {
        wait_was_notified = true;
        ByteBuffer out;
        write_notice(out, "00000", "No server connection available in postgres backend, client being queued");
        stream_.send_copy(out.bytes());
      }
      return;
    case ClientState::Leaving:
      // It said good-bye and will not learn the result: for a short while its statement may end in peace.
      if (left_politely_ && due(left_at_, kLeaveInPeace)) close_silently("client close request");
      return;
    case ClientState::Idle: {
      std::int64_t limit = o.client_idle_timeout.count();
      if (user_->config.client_idle_timeout && user_->config.client_idle_timeout->count() > 0)
        limit = user_->config.client_idle_timeout->count();
      if (due(last_packet, limit)) close(fatal("client_idle_timeout"));
      return;
    }
    default:
      return;
  }
}

std::int64_t ClientSession::query_wait_limit() const {
  if (user_ != nullptr && user_->config.query_wait_timeout) return user_->config.query_wait_timeout->count();
  return pool_->settings.query_wait_timeout;
}

}  // namespace lokadb
