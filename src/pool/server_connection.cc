#include "pool/server_connection.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "pool/cancel.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

ServerConnection::ServerConnection(Pooler& p, Pool& its_pool, Worker& w)
    : pooler(p), pool(its_pool), id(p.next_id()), generation_(its_pool.generation), worker_(&w), stream_(*this) {
  born = w.loop.now();
  connect_time = wall_us();
  request_time = connect_time;
  parameters_ = intern_parameters(ParameterValues(p.tracked.size()));
  is_reported_.resize(p.tracked.size());
  w.servers.push_back(this);
}

ServerConnection::~ServerConnection() = default;

std::string ServerConnection::log_name() const {
  return format("S-%p: %s/%s@%s", static_cast<const void*>(this), pool.database.name.c_str(), pool.user.name.c_str(),
                address_.empty() ? host_.c_str() : transport_text().c_str());
}

std::string ServerConnection::transport_text() const {
  if (address_.is_unix()) return format("unix:%d", pool.database.config->port);
  return to_text(address_);
}

int ServerConnection::worker_index() const { return worker_->index; }

bool ServerConnection::set_state(ServerEvent event) {
  ServerState from = state();
  auto next = next_state(from, event);
  if (!next) {
    log_line(LogLevel::Error, "%s: no way from %s by event %d", log_name().c_str(), name_of(from).data(),
             static_cast<int>(event));
    return false;
  }
  state_.store(*next, std::memory_order_relaxed);
  return true;
}

bool ServerConnection::is_clean() const {
  return state() == ServerState::Active && !is_busy_ && replies_.empty() && status_ == 'I' && body_left_ == 0 &&
         step_ == Step::None;
}

void ServerConnection::close_with(const Error& error) {
  if (state() == ServerState::Closed) return;
  bool may_die;
  {
    std::lock_guard guard(pooler.lock);
    if (ListHook<IdleTag>::is_linked()) pool.idle.remove(this);
    pooler.forget_server(*this);
    set_state(ServerEvent::Closed);
    may_die = in_flight == 0;
  }
  if (pooler.options().log_disconnections && !error.log_text().empty())
    log_line(LogLevel::Log, "%s closing because: %s (age=%llds)", log_name().c_str(), error.log_text().c_str(),
             static_cast<long long>((worker_->loop.now() - born) / 1000000));
  if (stream_.is_open() && !stream_.is_broken() && login_step_ == LoginStep::Messages) {
    static constexpr char kTerminate[] = {'X', 0, 0, 0, 4};
    // Half a message may be on its way; then only the end of the connection says it all.
    if (client_ == nullptr || !client_->is_mid_message()) stream_.send(as_bytes({kTerminate, sizeof kTerminate}));
    stream_.flush();
  }
  // The client's error comes after what the server has said, so the client is told before the leg is cut.
  ClientSession* lost_by = client_;
  AnswerSink* taken_by = sink_;
  unlink();
  if (taken_by != nullptr)
    taken_by->on_server_lost(*this, error);
  else if (lost_by != nullptr)
    lost_by->server_lost(error);
  CancelJob::server_gone(*this);
  dns_.cancel();
  stream_.close();
  worker_->loop.forget(*this);
  worker_->servers.remove(this);
  if (may_die) worker_->loop.bury(std::unique_ptr<Buriable>(this));
  // A slot is free now.
  pooler.launch_if_wanted(pool, *worker_);
}

bool ServerConnection::arrived() {
  bool is_last;
  {
    std::lock_guard guard(pooler.lock);
    is_last = --in_flight == 0;
  }
  if (state() != ServerState::Closed) return true;
  if (is_last) worker_->loop.bury(std::unique_ptr<Buriable>(this));
  return false;
}

void ServerConnection::close(const std::string& reason) { close_with(fatal(reason)); }

void ServerConnection::link(ClientSession& client) {
  if (!set_state(ServerEvent::Linked)) return close("illegal state");
  client_ = &client;
  has_served_ = true;
  if (client.state() != ClientState::Login && client.state() != ClientState::UserWanted) has_served_clients_ = true;
  request_time = wall_us();
}

void ServerConnection::client_left() {
  bool clean = is_clean();
  unlink();
  if (is_dedicated_) return close("replication client was closed");
  if (step_ == Step::ReadSettings) return;  // then it is free
  if (clean) return give_back();
  if (step_ == Step::SetParameters) return close("client disconnect before everything was sent to the server");
  close("client disconnect while server was not ready");
}

void ServerConnection::give_back() {
  if (is_reading_) {
    due_ = Due::GiveBack;
    return;
  }
  if (cancels_ > 0) {
    if (!set_state(ServerEvent::CancelAwaited)) close("illegal state");
    return;
  }
  is_pinned_ = false;
  const Options& o = pooler.options();
  bool is_session = pool.settings.mode == PoolMode::Session;
  if (is_session) residue_ = residue::kNone;  // the reset query's, or wanted to stay
  // What the greeting has set must stay, and a direct read leaves nothing behind.
  bool is_target = pool.database.is_target;
  if (is_target && residue_ != residue::kNone) return close("session state would be lost");
  bool resets = (o.server_reset_query_always || is_session) && !o.server_reset_query.empty() && !is_target;
  if ((!resets && residue_ == residue::kNone) || is_obsolete()) return pooler.release(*this);
  if ((residue_ & residue::kLasting) != 0) return close("session state would reach another client");
  // Of a client that went before it could be asked, all that it may have done goes.
  if ((residue_ & ~(residue::kReset | residue::kUnread)) != 0 ||
      ((residue_ & residue::kReset) && has_connect_query())) {
    if (!set_state(ServerEvent::TestStarted)) return close("illegal state");
    return start_step(Step::ResetState, "DISCARD ALL");
  }
  residue_ = residue::kNone;
  if (!resets) return pooler.release(*this);
  if (!set_state(ServerEvent::TestStarted)) return close("illegal state");
  settings_were_reset(false);  // unless the query is found to do all
  start_step(Step::ResetQuery, o.server_reset_query);
}

void ServerConnection::release() {
  if (is_reading_) {
    due_ = Due::Release;
    return;
  }
  pooler.release(*this);
}

void ServerConnection::cancel_ended() {
  // The cancel signal, if it came after the query, has met an idle backend, which ignores it.
  if (--cancels_ == 0 && state() == ServerState::BeingCanceled) give_back();
}

// What has come since the loop last asked the kernel is found by a look of our own, which a connection in constant use
// can do without: it is idle for microseconds.
bool ServerConnection::has_unasked_input() const {
  constexpr std::int64_t kConstantUse = 1000;
  return stream_.has_news() || (worker_->loop.now() - idle_since > kConstantUse && stream_.has_input_waiting());
}

void ServerConnection::test_before_use() {
  const std::string& query = pooler.options().server_check_query;
  start_step(Step::CheckQuery, query == "<empty>" ? std::string() : query);
}

void ServerConnection::leave_worker() {
  stream_.detach();
  worker_->loop.forget(*this);
  worker_->servers.remove(this);
}

void ServerConnection::join_worker(Worker& worker) {
  worker_ = &worker;
  worker.servers.push_back(this);
  stream_.attach(worker.loop);
}

void ServerConnection::start_step(Step step, const std::string& sql) {
  step_ = step;
  step_failed_ = false;
  rows_.clear();
  ByteBuffer out;
  write_query(out, sql);
  expect(Request::Query, false);
  stream_.send_copy(out.bytes());
}

void ServerConnection::step_finished() {
  Step step = step_;
  step_ = Step::None;
  switch (step) {
    case Step::None:
      return;
    case Step::ReadDefaults:
    case Step::SetParameters:
    case Step::ReadSettings:
      return settings_step_finished(step);
    case Step::DiscardAll:
    case Step::RepeatConnectQuery:
      return lookup_step_finished(step);
    case Step::UserLookup:
      if (step_failed_) {
        log_line(LogLevel::Error, "%s error in auth_query: %s", log_name().c_str(), step_error_.log_text().c_str());
        return close("error response from auth_query");
      }
      return status_ == 'I' ? client_->lookup_answered() : close("unexpected response from auth_query");
    case Step::ConnectQuery:
      if (step_failed_)
        log_line(LogLevel::Error, "%s: error while executing exec_on_query: %s", log_name().c_str(),
                 step_error_.log_text().c_str());
      defaults_ = parameters_;  // the query may have set some
      return read_settings(Step::ReadDefaults, false);
    case Step::Greeting:
      return greeting_answered();
    case Step::CheckQuery:
      if (step_failed_ || status_ != 'I') return close("test query failed");
      break;
    case Step::ResetQuery:
      if (step_failed_ || status_ != 'I') return close("reset query failed");
      break;
    case Step::ResetState:
      if (step_failed_ || status_ != 'I') return close("session state would reach another client");
      residue_ = residue::kNone;
      has_served_clients_ = false;
      if (has_connect_query()) return start_step(Step::ConnectQueryAgain, *pool.database.config->connect_query);
      break;
    case Step::ConnectQueryAgain:
      if (status_ != 'I') return close("connect query left a transaction open");
      break;
  }
  if (is_obsolete()) return close("close_needed");
  release();
}

void ServerConnection::on_send_failed() {
  // What the server said before it went (its last error) may still be there to be read.
  stream_.is_readable() ? worker_->loop.resume_later(*this) : close("server connection closed");
}

void ServerConnection::resume() { pump(); }

void ServerConnection::on_stream_event() {
  if (state() == ServerState::Moving) return;  // the next worker looks at it
  if (state() == ServerState::Closed) return;
  if (login_step_ != LoginStep::Messages) {
    switch (login_step_) {
      case LoginStep::Connecting:
        return connected();
      case LoginStep::SslAnswer:
        return read_ssl_answer();
      case LoginStep::SslHandshake:
        return continue_handshake();
      default:
        return;
    }
  }
  // The server takes bytes again: the client that feeds it may go on.
  if (client_ != nullptr && !stream_.is_blocked()) client_->peer_can_take_more();
  if (state() != ServerState::Closed) pump();
}

void ServerConnection::pump() {
  if (login_step_ != LoginStep::Messages || pooler.is_handed_over) return;
  bool was_idle = state() == ServerState::Idle;
  if (was_idle) {
    // Off the list while we look, so that no other worker takes it meanwhile.
    std::lock_guard guard(pooler.lock);
    if (!ListHook<IdleTag>::is_linked()) return;
    pool.idle.remove(this);
  }
  is_reading_ = true;
  read_while_possible();
  is_reading_ = false;
  if (state() == ServerState::Closed) return;
  if (was_idle && state() == ServerState::Idle) return pooler.release(*this);
  if (due_ == Due::None || !input_.empty() || body_left_ > 0) return;
  // From here on the connection may be another worker's already: nothing of it may be touched any more.
  std::exchange(due_, Due::None) == Due::GiveBack ? give_back() : pooler.release(*this);
}

void ServerConnection::read_while_possible() {
  int turns = pooler.options().sbuf_loopcnt;
  for (int i = 0; turns <= 0 || i < turns; ++i) {
    if (client_is_blocked()) return;
    ReadResult r = input_.read(stream_, worker_->loop, [this](Bytes in) { return consume(in); });
    if (state() == ServerState::Closed) return;
    if (r.status == ReadStatus::Empty) return;
    if (r.status != ReadStatus::Data) return connection_lost();
    worker_->loop.flush();
    if (state() == ServerState::Closed || (due_ != Due::None && input_.empty() && body_left_ == 0)) return;
    if (!replies_.empty()) stream_.assume_readable();
    if (!stream_.is_readable()) return;
  }
  worker_->loop.resume_later(*this);
}

void ServerConnection::connection_lost() {
  if (state() == ServerState::Login && may_ask_for_older()) return ask_for_old_protocol();
  if (state() == ServerState::Login) return could_not_connect("server conn crashed?");
  if (step_ == Step::Greeting) return greeting_failed();
  close("server conn crashed?");
}

}  // namespace lokadb
