// Servers given to clients, taken back, opened and shut: everything that happens under the pool lock.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr int kScanDepth = 32;  // how far the idle list is searched for a server of the client's own worker

// [lock] held. Found with unasked input by choose_idle(): it comes back when that was looked at, or it is closed, and
// either helps who waits.
bool has_one_to_look_at(Pool& pool, const Worker& worker) {
  for (ServerConnection* s = pool.idle.front(); s != nullptr; s = pool.idle.next(s))
    if (!s->is_obsolete() && &s->worker() == &worker && s->stream().is_readable()) return true;
  return false;
}

Error cached_refusal(const Pool& pool) {
  Error refusal =
      fatal("server login has been failing, cached error: " + pool.last_login_error + " (server_login_retry)");
  refusal.state = SqlState(pool.last_login_state);
  return refusal;
}

// [lock] held.
void refuse_all(List<ClientSession, WaitTag>& waiting, const Error& refusal) {
  while (ClientSession* client = waiting.pop_front()) {
    ++client->in_flight;
    client->worker.loop.post([client, refusal] {
      if (client->arrived()) client->server_refused(refusal);
    });
  }
}
}  // namespace

// Looks for an idle server, best first: of this worker, of another one, one that has to be checked before use.
Pooler::Choice Pooler::choose_idle(Pool& pool, const Worker& worker, std::int64_t now) {
  const Options& o = options();
  Choice choice;
  bool checks = !o.server_check_query.empty();
  int depth = 0;
  for (ServerConnection* s = pool.idle.front(); s != nullptr && depth < kScanDepth; s = pool.idle.next(s), ++depth) {
    if (s->is_obsolete()) continue;  // the janitor's
    if (&s->worker() == &worker && s->has_unasked_input()) {
      s->stream().assume_readable();
      s->worker().loop.resume_later(*s);
      continue;
    }
    bool is_stale = checks && now - s->idle_since >= o.server_check_delay.count();
    if (is_stale) {
      if (choice.stale == nullptr) choice.stale = s;
    } else if (&s->worker() == &worker) {
      choice.own = s;
      return choice;
    } else if (choice.foreign == nullptr) {
      choice.foreign = s;
    }
  }
  return choice;
}

Acquired Pooler::acquire(ClientSession& client) {
  Pool& pool = *client.wanted_pool();
  ServerConnection* own = nullptr;
  ServerConnection* foreign = nullptr;
  ServerConnection* stale = nullptr;
  std::int64_t now = client.worker.loop.now();
  Error refusal;
  bool is_refused = false;
  bool has_prospect = false;
  {
    std::lock_guard guard(lock);
    if (shutdown_mode == ShutdownMode::WaitForServers) {
      refusal = fatal("server shutting down");
      is_refused = true;
    } else if (may_serve(pool) && pool.waiters.empty()) {
      Choice choice = choose_idle(pool, client.worker, now);
      if (choice.own != nullptr) {
        own = choice.own;
        pool.idle.remove(own);
      } else if (choice.foreign != nullptr) {
        foreign = choice.foreign;
        pool.idle.remove(foreign);
        foreign->set_state(ServerEvent::Sent);
        ++foreign->in_flight;
        ++client.in_flight;
      } else if (choice.stale != nullptr) {
        stale = choice.stale;
        pool.idle.remove(stale);
        stale->set_state(ServerEvent::TestStarted);
        ++stale->in_flight;
        ++pool.testing_count;
      }
    }
    if (!is_refused && own == nullptr && foreign == nullptr) {
      if (login_keeps_failing(pool, now)) {
        refusal = cached_refusal(pool);
        is_refused = true;
      } else {
        pool.waiters.push_back(&client);
        has_prospect = stale == nullptr && has_one_to_look_at(pool, client.worker);
      }
    }
  }
  if (is_refused) {
    client.server_refused(refusal);
    return Acquired::Refused;
  }
  if (own != nullptr) {
    client.server_given(*own);
    if (client.state() == ClientState::Closed) return Acquired::Refused;
    return client.state() == ClientState::Active ? Acquired::Linked : Acquired::Queued;
  }
  client.wait_started = now;
  client.wait_was_notified = false;
  client.set_state(ClientEvent::ServerAsked);
  if (foreign != nullptr) {
    Worker& there = foreign->worker();
    there.loop.post([this, foreign, &client] {
      if (!foreign->arrived()) return try_again(client);
      if (foreign->has_unasked_input()) {
        look_at_input(*foreign);
        return try_again(client);
      }
      foreign->leave_worker();
      send_to(*foreign, client);
    });
    return Acquired::Queued;
  }
  if (stale != nullptr) {
    auto test = [stale] {
      if (stale->arrived()) stale->test_before_use();
    };
    if (&stale->worker() == &client.worker)
      test();
    else
      stale->worker().loop.post(test);
    return client.state() == ClientState::Closed ? Acquired::Refused : Acquired::Queued;
  }
  if (!has_prospect) launch_if_wanted(pool, client.worker);
  return client.state() == ClientState::Closed ? Acquired::Refused : Acquired::Queued;
}

bool Pooler::may_serve(const Pool& pool) const { return pause_mode == PauseMode::None && !pool.database.is_paused; }

bool Pooler::login_keeps_failing(const Pool& pool, std::int64_t now) const {
  return !pool.last_login_error.empty() && pool.last_connect_failed != 0 && pool.server_count == 0 &&
         now - pool.last_connect_failed < options().server_login_retry.count();
}

// It was on its way to another worker, which it has not reached.
void Pooler::look_at_input(ServerConnection& server) {
  {
    std::lock_guard guard(lock);
    server.set_state(ServerEvent::Returned);
    server.pool.idle.push_front(&server);
  }
  server.stream().assume_readable();
  server.pump();
}

// The server that was promised to the client is not for it: closed on its way, or to be looked at first.
void Pooler::try_again(ClientSession& client) {
  client.worker.loop.post([this, &client] {
    if (!client.arrived() || !client.waits_for_server()) return;
    Pool& pool = *client.wanted_pool();
    {
      std::lock_guard guard(lock);
      pool.waiters.push_front(&client);
    }
    serve_from_idle(pool);
    launch_if_wanted(pool, client.worker);
  });
}

// The server belongs to no worker now; the client's worker takes it.
void Pooler::send_to(ServerConnection& server, ClientSession& client) {
  Worker& here = client.worker;
  here.loop.post([this, &server, &client, &here] {
    server.join_worker(here);
    if (client.arrived() && client.waits_for_server()) return client.server_given(server);
    server.set_state(ServerEvent::Returned);
    release(server);
  });
}

void Pooler::release(ServerConnection& server) {
  Pool& pool = server.pool;
  ClientSession* next = nullptr;
  const char* reason = nullptr;
  std::int64_t now = server.worker().loop.now();
  bool is_foreign = false;
  bool more_wait = false;
  {
    std::lock_guard guard(lock);
    ServerState was = server.state();
    switch (was) {
      case ServerState::Login:
        server.set_state(ServerEvent::LoggedIn);
        break;
      case ServerState::Testing:
        server.set_state(ServerEvent::TestPassed);
        if (pool.testing_count > 0) --pool.testing_count;
        break;
      case ServerState::Active:
      case ServerState::BeingCanceled:
        server.set_state(ServerEvent::Released);
        break;
      default:
        break;
    }
    if (was != ServerState::Idle) server.idle_since = now;
    if (pause_mode == PauseMode::Paused || pool.database.is_paused)
      reason = "pause mode";
    else if (server.is_obsolete() || server.has_served())
      reason = server.reason_to_close(now);
    if (reason == nullptr) {
      next = may_serve(pool) ? pool.waiters.pop_front() : nullptr;
      if (next == nullptr) {
        put_idle(server);
      } else if (&next->worker != &server.worker()) {
        is_foreign = true;
        server.set_state(ServerEvent::Sent);
        ++next->in_flight;
      }
      more_wait = !pool.waiters.empty() || !pool.replicants.empty();
    } else if (reason == std::string_view("server lifetime over")) {
      pool.last_lifetime_close = now;
    }
  }
  if (reason != nullptr) return server.close(reason);
  Worker& here = server.worker();
  if (next != nullptr && is_foreign) {
    server.leave_worker();
    send_to(server, *next);
  } else if (next != nullptr) {
    next->server_given(server);
  }
  if (more_wait) launch_if_wanted(pool, here);
}

void Pooler::put_idle(ServerConnection& server) {
  if (options().server_round_robin)
    server.pool.idle.push_back(&server);
  else
    server.pool.idle.push_front(&server);
}

// ------------------------------------------------------------------ opening

// [lock] held. Whether the pool needs one more server connection for those who wait.
bool Pooler::is_wanted(const Pool& pool) const {
  std::size_t waiting = pool.waiters.size() + (pool.welcome ? 0 : pool.newcomers.size());
  return waiting > static_cast<std::size_t>(pool.testing_count);
}

Pooler::Launch Pooler::may_launch(Pool& pool, std::int64_t now, LaunchFor purpose) {
  if (is_stopping_ || pool.login_running || !may_serve(pool) || pool.database.is_console) return Launch::No;
  if (pool.last_connect_failed != 0 && now - pool.last_connect_failed < options().server_login_retry.count())
    return Launch::No;
  const PoolSettings& s = pool.settings;
  bool for_minimum = purpose == LaunchFor::Minimum;
  if (s.size > 0 && pool.server_count >= s.size && purpose == LaunchFor::Replication) return Launch::EvictOfPool;
  if (s.size > 0 && pool.server_count >= s.size) {
    std::int64_t patience = options().reserve_pool_timeout.count();
    ClientSession* first = pool.waiters.front();
    bool may_use_reserve = s.reserve > 0 && patience > 0 && first != nullptr && first->wait_started != 0 &&
                           now - first->wait_started >= patience && pool.server_count < s.size + s.reserve;
    if (!may_use_reserve) return Launch::No;
    log_line(LogLevel::Warning, "C-%p: %s/%s taking connection from reserve_pool", static_cast<void*>(first),
             pool.database.name.c_str(), pool.user.name.c_str());
  }
  if (s.max_db_connections > 0 && pool.database.server_count >= s.max_db_connections)
    return for_minimum ? Launch::No : Launch::EvictOfDatabase;
  if (s.max_user_connections > 0 && pool.user.server_count >= s.max_user_connections)
    return for_minimum ? Launch::No : Launch::EvictOfUser;
  return Launch::Yes;
}

// [lock] held. The longest idle server of the same pool, database or user, taken off its list.
ServerConnection* Pooler::take_victim(Pool& pool, Launch why) {
  ServerConnection* victim = nullptr;
  for_each_pool([&](Pool& other) {
    bool is_related = why == Launch::EvictOfPool       ? &other == &pool
                      : why == Launch::EvictOfDatabase ? &other.database == &pool.database
                                                       : &other.user == &pool.user;
    if (!is_related) return;
    other.idle.for_each([&](ServerConnection* s) {
      if (victim == nullptr || s->idle_since < victim->idle_since) victim = s;
    });
  });
  if (victim != nullptr) victim->pool.idle.remove(victim);
  return victim;
}

void Pooler::launch_if_wanted(Pool& pool, Worker& worker) {
  ServerConnection* made = nullptr;
  ServerConnection* victim = nullptr;
  ClientSession* dedicated_to = nullptr;
  {
    std::lock_guard guard(lock);
    ClientSession* replicant = next_replicant(pool);
    if (replicant == nullptr && !is_wanted(pool)) return;
    auto purpose = replicant != nullptr ? LaunchFor::Replication : LaunchFor::Waiters;
    Launch launch = may_launch(pool, worker.loop.now(), purpose);
    if (launch == Launch::No) return;
    if (launch == Launch::Yes && replicant != nullptr) {
      dedicated_to = replicant;
      pool.replicants.remove(replicant);
      ++replicant->in_flight;
      reserve_place(pool);
    } else if (launch == Launch::Yes) {
      made = new_server(pool, worker);
    } else if ((victim = take_victim(pool, launch)) != nullptr) {
      ++victim->in_flight;
    }
  }
  if (made != nullptr) return made->start_login();
  if (dedicated_to != nullptr) return open_dedicated(pool, *dedicated_to, &dedicated_to->worker == &worker);
  if (victim == nullptr) return;
  // Its close frees a place; then we look again.
  auto evict = [this, victim, &pool] {
    Worker& there = victim->worker();
    if (victim->arrived()) victim->close("evicted");
    launch_if_wanted(pool, there);
  };
  if (&victim->worker() == &worker)
    evict();
  else
    victim->worker().loop.post(evict);
}

void Pooler::fill_to_minimum(Pool& pool, Worker& worker) {
  ServerConnection* made = nullptr;
  {
    std::lock_guard guard(lock);
    bool in_use = pool.client_count > 0 || pool.server_count > 0 || pool.database.config->user.has_value();
    if (!in_use || pool.server_count >= pool.settings.min_size) return;
    if (may_launch(pool, worker.loop.now(), LaunchFor::Minimum) != Launch::Yes) return;
    made = new_server(pool, worker);
  }
  made->start_login();
}

// [lock] held.
void Pooler::reserve_place(Pool& pool) {
  pool.login_running = true;
  ++pool.server_count;
  ++pool.database.server_count;
  ++pool.user.server_count;
}

// [lock] held.
ServerConnection* Pooler::new_server(Pool& pool, Worker& worker) {
  reserve_place(pool);
  return new ServerConnection(*this, pool, worker);
}

void Pooler::forget_server(ServerConnection& server) {
  Pool& pool = server.pool;
  ++pool.changes;
  --pool.server_count;
  --pool.database.server_count;
  --pool.user.server_count;
  if (std::exchange(server.is_logging_in, false)) pool.login_running = false;
  if (server.state() == ServerState::Testing && pool.testing_count > 0) --pool.testing_count;
  // It was the last that could have served them. For an organization there is another way, which they need not wait
  // for.
  if (pool.database.is_target && login_keeps_failing(pool, server.worker().loop.now()))
    refuse_all(pool.waiters, cached_refusal(pool));
}

void Pooler::login_done(ServerConnection& server, std::shared_ptr<const Welcome> welcome) {
  Pool& pool = server.pool;
  {
    std::lock_guard guard(lock);
    pool.login_running = server.is_logging_in = false;
    ++pool.changes;
    pool.last_connect_failed = 0;
    pool.last_login_error.clear();
    if (!server.is_obsolete()) pool.welcome = std::move(welcome);  // the newest knows best
    while (ClientSession* client = pool.welcome ? pool.newcomers.pop_front() : nullptr) {
      ++client->in_flight;
      client->worker.loop.post([client] {
        if (client->arrived()) client->welcome_arrived();
      });
    }
    if (server.state() == ServerState::Login) server.set_state(ServerEvent::LoggedIn);
  }
  server.release();
}

void Pooler::login_failed(ServerConnection& server, const Error* refusal) {
  Pool& pool = server.pool;
  std::lock_guard guard(lock);
  if (pool.database.config->load_balance_hosts == LoadBalanceHosts::Disable) ++pool.next_host;
  if (server.is_dedicated()) return;  // its client's own affair
  pool.last_connect_failed = server.worker().loop.now();
  if (refusal == nullptr) return;
  pool.last_login_error = refusal->to_client;
  pool.last_login_state = refusal->state.text();
  // While others of the pool work, who waits may still be served.
  if (pool.server_count > 1 && pool.welcome) return;
  refuse_all(pool.waiters, *refusal);
  refuse_all(pool.newcomers, *refusal);
}

// Idle servers go to those who wait.
void Pooler::serve_from_idle(Pool& pool) {
  while (true) {
    ServerConnection* server = nullptr;
    {
      std::lock_guard guard(lock);
      if (!may_serve(pool) || pool.waiters.empty()) break;
      server = pool.idle.pop_front();
      if (server == nullptr) break;
      ++server->in_flight;
    }
    Worker& there = server->worker();
    there.loop.post([this, server] {
      if (server->arrived()) release(*server);
    });
  }
}

// After a pause.
void Pooler::kick(Pool& pool) {
  serve_from_idle(pool);
  Worker& main = main_worker();
  launch_if_wanted(pool, main);
}

}  // namespace lokadb
