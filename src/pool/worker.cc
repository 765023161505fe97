#include "pool/worker.h"

#include <pthread.h>

#include "base/log.h"
#include "pool/cancel.h"
#include "pool/client_session.h"
#include "pool/peer_forward.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr std::int64_t kTickPeriod = 333333;  // microseconds: PgBouncer's three a second
constexpr std::int64_t kIdlePeriod = 10 * kTickPeriod;
}  // namespace

Worker::Worker(Pooler& p, int i, std::size_t receive_size) : pooler(p), index(i), loop(receive_size) {
  DnsSettings settings;
  settings.max_ttl = p.options().dns_max_ttl;
  settings.nxdomain_ttl = p.options().dns_nxdomain_ttl;
  settings.resolv_conf = p.options().resolv_conf;
  auto made = DnsResolver::create(loop, settings);
  if (!made) log_fatal("cannot set up DNS: %s", made.error().log_text().c_str());
  resolver = std::move(*made);
  // A server at an address that its name has no more is replaced as it comes free.
  resolver->on_lost_address([&pooler = p](const std::string& name, const SocketAddress& address) {
    pooler.run_alone_later([&pooler, name, address] {
      pooler.for_each_server([&](ServerConnection& s) {
        SocketAddress there = s.address();
        there.set_port(0);
        if (s.host() == name && there == address) s.make_obsolete();
      });
    });
  });
  janitor_ = std::make_unique<Timer>(loop, kTickPeriod, [this] { tick(); });
}

Worker::~Worker() = default;

void Worker::start_thread() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), ("worker" + std::to_string(index)).c_str());
    loop.run();
  });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::tick() {
  if (pooler.is_handed_over) return;
  std::int64_t now = loop.now();
  // Most clients are idle and have no limit on it: then nobody looks at them.
  if (timed_clients > 0 || pooler.has_client_idle_timeouts)
    clients.for_each([now](ClientSession* c) { c->check_timeouts(now); });
  servers.for_each([now](ServerConnection* s) { s->check_timeouts(now); });
  if (!cancels.empty()) CancelJob::tick(*this, now);
  if (!forwards.empty()) PeerForward::tick(*this, now);
  check_zones(now);
  if (index == 0)
    pooler.tick();
  else if (timed_clients > 0)
    pooler.launch_for_waiters(*this);
  std::int64_t period = has_near_limits() ? kTickPeriod : kIdlePeriod;
  if (period != janitor_->period()) janitor_->set_period(period);
}

// dns_zone_check_period
void Worker::check_zones(std::int64_t now) {
  std::int64_t period = pooler.options().dns_zone_check_period.count();
  if (period == 0 || now - zones_checked_ < period) return;
  zones_checked_ = now;
  resolver->check_zones();
}

void Worker::tick_soon() {
  if (janitor_->period() != kTickPeriod) janitor_->set_period(kTickPeriod);
}

// Waking up for nothing is most of what an idle pooler costs.
bool Worker::has_near_limits() {
  if (timed_clients > 0 || !cancels.empty() || !forwards.empty() || pooler.has_short_limits) return true;
  if (index == 0 && pooler.somebody_waits) return true;
  if (pooler.pause_mode != PauseMode::None || pooler.shutdown_mode != ShutdownMode::None) return true;
  bool found = false;
  servers.for_each([&found](ServerConnection* s) {
    bool is_settled = s->state() == ServerState::Idle || s->state() == ServerState::Active;
    found = found || !is_settled || s->is_obsolete();
  });
  return found;
}

}  // namespace lokadb
