#include "admin/lifecycle.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "pool/client_session.h"
#include "pool/server_connection.h"

namespace lokadb {

void Lifecycle::pause_all(std::uint64_t session_id) {
  pooler_.pause_mode = PauseMode::Paused;
  close_idle_servers(nullptr);
  waiting_.push_back({session_id, Kind::Pause, {}, now_us()});
  check_alone();
}

void Lifecycle::pause(Database& database, std::uint64_t session_id) {
  database.is_paused = true;
  close_idle_servers(&database);
  waiting_.push_back({session_id, Kind::PauseDatabase, database.name, now_us()});
  check_alone();
}

void Lifecycle::suspend(std::uint64_t session_id) {
  pooler_.pause_mode = PauseMode::Suspended;
  control_.set_listening(false);
  waiting_.push_back({session_id, Kind::Suspend, {}, now_us()});
  check_alone();
}

void Lifecycle::wait_close(Database* only, std::uint64_t session_id) {
  waiting_.push_back({session_id, Kind::WaitClose, only != nullptr ? only->name : std::string(), now_us()});
  check_alone();
}

// Those free now are not needed any more; those at work are closed when they come back.
void Lifecycle::close_idle_servers(const Database* only) {
  pooler_.for_each_server([&](ServerConnection& s) {
    if (only != nullptr && &s.pool.database != only) return;
    if (s.is_dedicated()) return;  // it is its client's already
    if (s.state() == ServerState::Idle || s.state() == ServerState::Login || s.state() == ServerState::Testing)
      s.close("pause mode");
  });
}

void Lifecycle::shut_down(ShutdownMode mode) {
  pooler_.shutdown_mode = mode;
  if (mode == ShutdownMode::Immediate) return pooler_.stop_all();
  control_.close_tcp_listeners();
  if (mode == ShutdownMode::WaitForServers) {
    pooler_.pause_mode = PauseMode::Paused;
    close_idle_servers(nullptr);
    pooler_.for_each_client([](ClientSession& c) {
      if (c.waits_for_server() || c.state() == ClientState::Welcome) c.close(fatal("server shutting down"));
    });
  }
  check_alone();
}

bool Lifecycle::resume_all() {
  if (pooler_.pause_mode == PauseMode::None) return false;
  bool was_suspended = pooler_.pause_mode == PauseMode::Suspended;
  pooler_.pause_mode = PauseMode::None;
  if (pooler_.is_handed_over) {
    pooler_.is_handed_over = false;
    pooler_.for_each_server([](ServerConnection& s) {
      s.stream().assume_readable();
      s.worker().loop.resume_later(s);
    });
  }
  if (was_suspended) {
    control_.set_listening(true);
    pooler_.for_each_client([](ClientSession& c) { c.worker.loop.resume_later(c); });
  }
  end_waits(Kind::Pause, false);
  end_waits(Kind::Suspend, false);
  pooler_.for_each_pool([this](Pool& p) { pooler_.kick(p); });
  return true;
}

void Lifecycle::resume(Database& database) {
  database.is_paused = false;
  for (auto& [name, pool] : database.pools) pooler_.kick(*pool);
  auto waits = std::move(waiting_);
  waiting_.clear();
  for (auto& w : waits) {
    if (w.kind == Kind::PauseDatabase && w.database == database.name)
      finished_(w.session_id, "PAUSE", false);
    else
      waiting_.push_back(std::move(w));
  }
}

void Lifecycle::end_waits(Kind kind, bool ok) {
  auto waits = std::move(waiting_);
  waiting_.clear();
  for (auto& w : waits) {
    if (w.kind == kind)
      finished_(w.session_id, kind == Kind::Suspend ? "SUSPEND" : "PAUSE", ok);
    else
      waiting_.push_back(std::move(w));
  }
}

void Lifecycle::abandoned(std::uint64_t session_id) {
  auto it = std::find_if(waiting_.begin(), waiting_.end(),
                         [session_id](const Waiting& w) { return w.session_id == session_id; });
  if (it == waiting_.end()) {
    if (session_id == suspended_by_ && pooler_.pause_mode == PauseMode::Suspended) {
      log_line(LogLevel::Log, "admin disappeared when suspended, doing RESUME");
      resume_all();
    }
    return;
  }
  Waiting gone = *it;
  waiting_.erase(it);
  finished_(gone.session_id, "PAUSE", false);
  if (gone.kind == Kind::PauseDatabase) {
    auto database = pooler_.databases.find(gone.database);
    if (database != pooler_.databases.end()) resume(*database->second);
  } else if (gone.kind != Kind::WaitClose) {
    if (gone.kind == Kind::Suspend) log_line(LogLevel::Log, "admin disappeared when suspended, doing RESUME");
    resume_all();
  }
}

void Lifecycle::check() {
  pooler_.somebody_waits = !waiting_.empty();
  if (waiting_.empty() && pooler_.shutdown_mode == ShutdownMode::None) return;
  pooler_.run_alone([this] { check_alone(); });
}

void Lifecycle::check_alone() {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].kind == Kind::Suspend && !is_done(waiting_[i])) enforce_suspend_timeout(waiting_[i].since);
    if (!is_done(waiting_[i])) {
      ++i;
      continue;
    }
    Waiting done = waiting_[i];
    waiting_.erase(waiting_.begin() + static_cast<long>(i));
    if (done.kind == Kind::Suspend) suspended_by_ = done.session_id;
    const char* tag = done.kind == Kind::Suspend ? "SUSPEND" : done.kind == Kind::WaitClose ? "WAIT_CLOSE" : "PAUSE";
    finished_(done.session_id, tag, true);
  }
  if (pooler_.shutdown_mode != ShutdownMode::None && shutdown_is_complete()) {
    log_line(LogLevel::Log, pooler_.shutdown_mode == ShutdownMode::WaitForServers
                                ? "server connections dropped, exiting"
                                : "client connections dropped, exiting");
    pooler_.shutdown_mode = ShutdownMode::Immediate;
    pooler_.stop_all();
  }
}

bool Lifecycle::is_done(const Waiting& waiting) const {
  Database* database = nullptr;
  if (!waiting.database.empty()) {
    auto it = pooler_.databases.find(waiting.database);
    if (it == pooler_.databases.end()) return true;
    database = it->second.get();
  }
  if (waiting.kind == Kind::Suspend) return is_drained();
  if (waiting.kind != Kind::WaitClose) return pooler_.servers_gone(database);
  bool obsolete_left = false;
  pooler_.for_each_server([&](ServerConnection& s) {
    if (s.is_obsolete() && (database == nullptr || &s.pool.database == database)) obsolete_left = true;
  });
  return !obsolete_left;
}

// Nothing half sent anywhere: all connections stand between two messages.
bool Lifecycle::is_drained() const {
  bool drained = true;
  pooler_.for_each_client([&](ClientSession& c) {
    if (c.state() != ClientState::Console && (c.stream().has_unsent() || c.is_mid_message())) drained = false;
  });
  pooler_.for_each_server([&](ServerConnection& s) {
    if (s.stream().has_unsent()) drained = false;
  });
  return drained;
}

void Lifecycle::enforce_suspend_timeout(std::int64_t since) {
  std::int64_t limit = pooler_.options().suspend_timeout.count();
  if (limit == 0 || now_us() - since < limit) return;
  pooler_.for_each_client([](ClientSession& c) {
    if (c.state() != ClientState::Console && (c.stream().has_unsent() || c.is_mid_message()))
      c.close(fatal("suspend_timeout"));
  });
  pooler_.for_each_server([](ServerConnection& s) {
    if (s.stream().has_unsent()) s.close("suspend_timeout");
  });
}

bool Lifecycle::shutdown_is_complete() const {
  if (pooler_.shutdown_mode == ShutdownMode::WaitForServers) return pooler_.servers_gone(nullptr);
  if (pooler_.shutdown_mode == ShutdownMode::WaitForClients) return pooler_.client_total.load() == 0;
  return false;
}

}  // namespace lokadb
