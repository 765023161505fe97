#include "pool/client_session.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/socket.h"
#include "pool/cancel.h"
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/routing.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
Error terminated() {
  return {SqlState("57P01"), Severity::Fatal, "terminating connection due to administrator command", {}};
}
}  // namespace

ClientSession::ClientSession(Pooler& p, Worker& w, int fd, const SocketAddress& peer)
    : pooler(p), worker(w), id(p.next_id()), stream_(*this), peer_(peer) {
  connect_time = wall_us();
  request_time = connect_time;
  born = last_packet = w.loop.now();
  if (peer.is_unix()) unix_pid_ = unix_peer(fd).pid;
  p.client_total.fetch_add(1, std::memory_order_relaxed);
  w.client_count.fetch_add(1, std::memory_order_relaxed);
  w.clients.push_back(this);
  ++w.timed_clients;  // in state Startup
  w.tick_soon();
  stream_.open_accepted(w.loop, fd, peer.is_unix());
}

ClientSession::~ClientSession() = default;

bool ClientSession::login_is_in_handshake() const { return login_ != nullptr && login_->is_in_handshake(); }

void ClientSession::start() {
  login_ = std::make_unique<ClientLogin>(*this);
  // The start-up packet is often there already when the connection is accepted.
  pump();
  stream_.watch();
}

bool ClientSession::set_state(ClientEvent event) {
  auto next = next_state(state_, event);
  if (!next) {
    log_line(LogLevel::Error, "%s no way from %s by event %d", log_name().c_str(), name_of(state_).data(),
             static_cast<int>(event));
    return false;
  }
  enter(*next);
  return true;
}

void ClientSession::enter(ClientState next) {
  // Every state but these has a time limit that the worker has to watch.
  auto is_timed = [](ClientState s) {
    return s <= ClientState::Welcome || s == ClientState::Waiting || s == ClientState::Leaving;
  };
  worker.timed_clients += static_cast<int>(is_timed(next)) - static_cast<int>(is_timed(state_));
  if (is_timed(next)) worker.tick_soon();
  state_ = next;
}

std::string ClientSession::peer_host() const {
  if (!peer_.is_unix()) return host_text(peer_);
  return unix_pid_ > 0 ? format("unix(%d)", unix_pid_) : "unix";
}

int ClientSession::peer_port() const { return peer_.is_unix() ? pooler.options().listen_port : peer_.port(); }

std::string ClientSession::log_name() const {
  const char* db = database_ != nullptr ? database_->name.c_str() : login_ ? login_->database_name() : "(nodb)";
  const char* user = user_ != nullptr ? user_->name.c_str() : login_ ? login_->user_name() : "(nouser)";
  return format("C-%p: %s/%s@%s:%d", static_cast<const void*>(this), db, user, peer_host().c_str(), peer_port());
}

PoolCounters& ClientSession::counters() { return pool_->counters[static_cast<std::size_t>(worker.index)]; }

// ------------------------------------------------------------------ input

void ClientSession::on_stream_event() {
  if (state_ == ClientState::Closed) return;
  // The client takes bytes again: its server may go on.
  if (!stream_.is_blocked() && is_linked() && leg_.server->stream().is_readable()) leg_.server->pump();
  if (state_ == ClientState::Leaving) return look_after_leaving();
  if (is_looked_up() || state_ == ClientState::Checking) return look_for_end();
  if (state_ != ClientState::Closed) pump();
}

void ClientSession::resume() { pump(); }

void ClientSession::peer_can_take_more() {
  if (stream_.is_readable() || !input_.empty()) worker.loop.resume_later(*this);
}

bool ClientSession::may_read() const {
  if (routing_ != nullptr && routing_->is_busy()) return false;
  switch (state_) {
    case ClientState::Startup:
    case ClientState::Login:
    case ClientState::Idle:
      return !stream_.is_blocked();
    case ClientState::Active:
      if (is_stalled_ || leg_.server->stream().is_blocked()) return false;
      // SUSPEND stops between messages, never inside one.
      return pooler.pause_mode != PauseMode::Suspended || is_mid_message();
    case ClientState::Console:
      return !stream_.is_blocked() && !console_is_waiting;
    default:
      return false;
  }
}

void ClientSession::pump() {
  if (pooler.is_handed_over && state_ != ClientState::Console) return;
  if (routing_ != nullptr && routing_->resumed()) return;
  auto consume_all = [this](Bytes in) { return consume(in); };
  if (!input_.empty() && may_read()) {
    input_.retry(worker.loop, consume_all);
    worker.loop.flush();
  }
  int turns = pooler.options().sbuf_loopcnt;
  for (int i = 0; turns <= 0 || i < turns; ++i) {
    if (!stream_.is_open() || !stream_.is_readable() || !may_read()) return;
    if (login_ != nullptr && login_->is_in_handshake()) {
      if (!login_->continue_handshake()) return;
      continue;
    }
    bool counts = pool_ != nullptr && state_ != ClientState::Console;  // neither its login nor what the console is told
    ReadResult r = input_.read(stream_, worker.loop, consume_all);
    if (state_ == ClientState::Closed) return;
    if (r.status == ReadStatus::Empty) return;
    if (r.status != ReadStatus::Data) return input_over(r.status);
    last_packet = worker.loop.now();
    if (counts) counters().bytes_received.add(r.size);
    if (!answer_is_due() && !stream_.has_unsent()) stream_.assume_readable();
    worker.loop.flush();
  }
  worker.loop.resume_later(*this);
}

// Something will be written to the client before it has to say anything more.
bool ClientSession::answer_is_due() const {
  return state_ == ClientState::Active ? !is_mid_message() && leg_.server->can_finish_alone() : console_is_waiting;
}

std::size_t ClientSession::consume(Bytes in) {
  nothing_received_ = false;
  std::size_t at = 0;
  while (at < in.size()) {
    std::size_t used = 0;
    Outcome outcome = consume_one(in.subspan(at), used);
    if (outcome == Outcome::Closed) return in.size();
    if (outcome == Outcome::Wait && state_ == ClientState::Active) is_stalled_ = true;
    if (outcome != Outcome::Done) return at;
    at += used;
    marks_.position += used;
  }
  return at;
}

Outcome ClientSession::consume_one(Bytes in, std::size_t& used) {
  switch (state_) {
    case ClientState::Startup:
    case ClientState::Login: {
      auto taken = login_->consume(in);
      if (state_ == ClientState::Closed) return Outcome::Closed;
      used = taken;
      return taken == 0 ? Outcome::NeedMore : Outcome::Done;
    }
    case ClientState::Checking:
    case ClientState::UserWanted:
    case ClientState::UserAsked:
    case ClientState::Welcome:
    case ClientState::Waiting:
    case ClientState::Preparing:
      return Outcome::Wait;
    case ClientState::Leaving:
    case ClientState::Closed:
      return Outcome::Closed;
    default:
      break;
  }
  if (body_left_ > 0) {
    used = std::min(body_left_, in.size());
    if (streams_text_) note_piece(in.first(used));
    if (scan_ && scan_->feed(as_text(in.first(used)))) return refuse_several_transactions();
    if (!body_is_dropped_) leg_.server->forward(in.first(used));
    body_left_ -= used;
    if (body_left_ == 0) streams_text_ = false, scan_.reset();
    if (body_left_ == 0 && !body_is_dropped_) message_forwarded();
    return Outcome::Done;
  }
  auto head = peek_head(in);
  if (!head) return Outcome::NeedMore;
  if (head->body == kBadLength || head->body > pooler.options().max_packet_size) {
    std::string hex;
    for (std::size_t i = 0; i < kHeaderSize; ++i) hex += format("%02x", static_cast<unsigned>(in[i]));
    return refuse(fatal("bad packet header: '" + hex + "'"));
  }
  if (state_ == ClientState::Console) return handle_console(*head, in, used);
  if (routing_ != nullptr)
    if (auto outcome = routing_->look_at(*head, in, used)) return *outcome;
  return handle_request(*head, in, used);
}

void ClientSession::input_over(ReadStatus how) {
  if (nothing_received_) return close_silently({});
  if (how == ReadStatus::Failed && is_linked()) {
    // Reset by the peer: nobody is there to read an answer.
    leg_.server->client_left();
    leg_.server = nullptr;
  }
  leave("client unexpected eof");
}

// A message that came in pieces has gone to the server as a whole: it may have been a late one that nobody answers.
void ClientSession::message_forwarded() {
  if (state_ == ClientState::Active && mode() != PoolMode::Session && leg_.server->is_clean()) release_server();
}

// ------------------------------------------------------------------ servers

void ClientSession::server_given(ServerConnection& server) {
  leg_.server = &server;
  counters().server_assignment_count.add(1);
  if (wait_started != 0) {
    counters().wait_time.add(static_cast<std::uint64_t>(worker.loop.now() - wait_started));
    wait_started = 0;
  }
  bool was_waiting = state_ == ClientState::Waiting;
  server.link(*this);
  if (server.state() != ServerState::Active) return;
  if (routing_ != nullptr) routing_->server_given(server);
  if (state_ == ClientState::Login || state_ == ClientState::UserWanted) {
    if (!set_state(ClientEvent::ServerGiven)) return close(fatal("illegal state"));
    return server.look_up_user();
  }
  if (!server.agrees_with(parameters_) && server.set_parameters_for(*this)) {
    if (!set_state(ClientEvent::ServerToSet)) close(fatal("illegal state"));
    return;
  }
  if (!set_state(ClientEvent::ServerGiven)) return close(fatal("illegal state"));
  if (was_waiting) worker.loop.resume_later(*this);
}

void ClientSession::statements_are_settled() {
  if (!is_stalled_) return;
  is_stalled_ = false;
  worker.loop.resume_later(*this);
}

void ClientSession::parameters_set(ServerConnection& by) {
  if (state_ == ClientState::Closed) return;
  if (leg_.server != &by) return routing_->parameters_set(by);
  if (!set_state(ClientEvent::ServerSet)) return close(fatal("illegal state"));
  worker.loop.resume_later(*this);
}

void ClientSession::settings_read() {
  if (state_ == ClientState::Closed) return;
  if (!set_state(ClientEvent::ServerSet)) return close(fatal("illegal state"));
  release_server();
}

void ClientSession::tell_parameter(std::string_view name, std::string_view value) {
  ByteBuffer out;
  write_parameter_status(out, name, value);
  stream_.send_copy(out.bytes());
}

void ClientSession::terminate() {
  if (!is_linked() || !leg_.server->has_outstanding()) return close(terminated());
  is_condemned_ = true;
  CancelJob::cancel(*this);
}

void ClientSession::server_is_ready(char status) {
  ServerConnection& server = *leg_.server;
  PoolMode how = mode();
  if (how == PoolMode::Statement && status != 'I') {
    Error error = fatal("transaction blocks not allowed in statement pooling mode");
    return server.close_with(error);
  }
  if (server.owes_answers()) return;
  if (routing_ != nullptr) {
    statements_are_settled();  // the next batch may be looked at
    routing_->server_is_ready();
  }
  if (is_condemned_) return close(terminated());
  if (state_ == ClientState::Leaving) {
    leg_.server = nullptr;
    server.client_left();
    return close_silently("client close request");
  }
  if (how == PoolMode::Session) {
    if (status == 'I' && server.is_obsolete() && pooler.options().server_fast_close)
      server.close("database configuration changed");
    return;
  }
  if (server.is_clean() && !is_mid_message()) release_server();
}

void ClientSession::release_server() {
  ServerConnection& server = *leg_.server;
  if (server.has_residue() && server.settle_residue()) return;
  leg_.server = nullptr;
  server.unlink();
  if (!set_state(ClientEvent::ServerReleased)) return close(fatal("illegal state"));
  server.give_back();
  // What the client sent meanwhile, for its next transaction, waits its turn like everybody's.
  if (!input_.empty() || stream_.is_readable()) worker.loop.resume_later(*this);
}

void ClientSession::server_lost(const Error& error) {
  bool is_unknown = routing_ != nullptr && routing_->may_be_committing() && leg_.server->owes_answers();
  leg_.server = nullptr;
  if (is_unknown && state_ != ClientState::Closed) {
    Error unknown{sqlstate::kCompletionUnknown, Severity::Fatal,
                  "the server was lost while a commit may have been under way; whether it was done is not known",
                  error.log_text()};
    return close(unknown, state_ != ClientState::Leaving || !left_politely_);
  }
  if (state_ == ClientState::Closed) return;
  if (state_ == ClientState::UserAsked) return close(fatal("bouncer config error"));
  close(error, state_ != ClientState::Leaving || !left_politely_);
}

void ClientSession::server_refused(const Error& error) {
  if (routing_ == nullptr || !routing_->server_refused(error)) close(error);
}

void ClientSession::feeds_are_fresh() { routing_->feeds_are_fresh(); }

// Logged in: from now on the plugins see its batches.
void ClientSession::begin_routing() {
  if (pooler.plugins != nullptr) routing_ = std::make_unique<Routing>(*this, *pooler.plugins);
}

// ------------------------------------------------------------------ the end

void ClientSession::leave(const std::string& reason) {
  if (is_linked()) {
    if (state_ == ClientState::Active && !replication_ && !is_mid_message() && leg_.server->can_finish_alone()) {
      // What was asked is still done, and its answer given to a client that only shut down its sending side.
      set_state(ClientEvent::ClientLeft);
      left_at_ = worker.loop.now();
      if (!left_politely_) probe();
      return;
    }
    ServerConnection& server = *leg_.server;
    leg_.server = nullptr;
    server.client_left();
  }
  close_silently(reason);
}

// The end of its stream may be all that a client meant (it still reads), or the client is dead: a byte sent to it
// tells. A report of a setting that has not changed is a message that every client takes at any time.
void ClientSession::probe() {
  const auto& encoding = leg_.server->parameters()->values()[TrackedNames::kClientEncoding];
  if (!encoding || leg_.server->is_mid_answer()) return;
  ByteBuffer out;
  write_parameter_status(out, pooler.tracked.name(TrackedNames::kClientEncoding), *encoding);
  stream_.send_copy(out.bytes());
}

// Whether the client answered the probe with a reset.
void ClientSession::look_after_leaving() {
  if (!left_politely_ && stream_.take_error()) close_silently("client unexpected eof");
}

void ClientSession::on_send_failed() {
  if (state_ == ClientState::Closed) return;
  if (state_ == ClientState::Leaving && left_politely_) return;  // it said that it would not read
  close_silently("unexpected eof");
}

void ClientSession::close(const Error& error, bool tell) {
  if (state_ == ClientState::Closed) return;
  log_closing(error.log_text());  // first of all, so that the reason is in the log before the client can act on it
  if (tell) {
    if (pooler.options().log_pooler_errors)
      log_line(LogLevel::Warning, "%s pooler error: %s", log_name().c_str(), error.to_client.c_str());
    ByteBuffer out;
    write_error(out, error);
    stream_.send_copy(out.bytes());
  }
  end(tell);
}

void ClientSession::close_silently(const std::string& reason) {
  if (state_ == ClientState::Closed) return;
  log_closing(reason);
  end(false);
}

void ClientSession::log_closing(const std::string& reason) const {
  if (!pooler.options().log_disconnections || reason.empty()) return;
  log_line(LogLevel::Log, "%s closing because: %s (age=%llds)", log_name().c_str(), reason.c_str(),
           static_cast<long long>((worker.loop.now() - born) / 1000000));
}

void ClientSession::end(bool has_last_words) {
  if (state_ == ClientState::Closed) return;
  ClientState was = state_;
  enter(ClientState::Closed);
  if (routing_ != nullptr) routing_->session_ended();
  if (is_linked()) {
    ServerConnection& server = *leg_.server;
    leg_.server = nullptr;
    server.client_left();
  }
  bool may_die;
  {
    std::lock_guard guard(pooler.lock);
    if (ListHook<WaitTag>::is_linked()) {
      auto& logged_in = replication_ ? pool_->replicants : pool_->newcomers;
      (was == ClientState::Welcome ? logged_in : wanted_pool()->waiters).remove(this);
    }
    forget_lookup();
    forget_counts();
    forget_number();
    may_die = in_flight == 0;
  }
  if (was == ClientState::Console && pooler.console != nullptr) {
    std::uint64_t gone = id;
    Pooler& p = pooler;
    p.run_alone_later([&p, gone] { p.console->abandoned(gone); });
  }
  statements_.clear();
  if (has_last_words || has_tls()) stream_.close_politely();
  stream_.flush();
  stream_.close();
  worker.loop.forget(*this);
  worker.clients.remove(this);
  worker.client_count.fetch_sub(1, std::memory_order_relaxed);
  pooler.client_total.fetch_sub(1, std::memory_order_relaxed);
  if (may_die) worker.loop.bury(std::unique_ptr<Buriable>(this));
}

// [pool lock] held.
void ClientSession::forget_counts() {
  if (!is_counted_) return;
  is_counted_ = false;
  if (database_ != nullptr) --database_->client_count;
  if (user_ != nullptr) --user_->client_count;
  if (pool_ != nullptr) --pool_->client_count;
}

// [pool lock] held.
void ClientSession::forget_number() {
  auto [it, end] = pooler.numbers.equal_range(number());
  while (it != end && it->second != this) ++it;
  if (it != end) pooler.numbers.erase(it);
}

bool ClientSession::arrived() {
  bool is_last;
  {
    std::lock_guard guard(pooler.lock);
    is_last = --in_flight == 0;
  }
  if (state_ != ClientState::Closed) return true;
  if (is_last) worker.loop.bury(std::unique_ptr<Buriable>(this));
  return false;
}

}  // namespace lokadb
