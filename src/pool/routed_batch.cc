// From the first verdict to the end: what plugins ask for, servers, and beginning anew.
#include "pool/routed_batch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "pool/cloud_batch.h"
#include "pool/pooler.h"
#include "pool/routing.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
// A move there and back, with a change of the profile, is half a dozen changes of the routing, and a batch that waits
// for its turn in a small pool may meet them all. More than that is something that does not end.
constexpr int kMaxStaleGates = 8;
}  // namespace

RoutedBatch::RoutedBatch(ClientSession& session, Routing& routing, std::vector<std::byte> messages, ReadBatch read,
                         BatchContext context)
    : session_(session), routing_(routing), messages_(std::move(messages)), read_(std::move(read)) {
  batch_ = std::make_unique<Batch>(std::move(context), read_.statements);
  for (const std::string& name : read_.changed_names)
    names_before_.emplace_back(name, session_.statements().find(name));
}

RoutedBatch::~RoutedBatch() = default;

// ------------------------------------------------------------------ deciding

void RoutedBatch::decide() {
  phase_ = Phase::Deciding;
  follow(routing_.chain().begin(*batch_));
}

void RoutedBatch::follow(BatchVerdict verdict) {
  verdict_ = std::move(verdict);
  if (verdict_.kind == LOKADB_ASK) {
    phase_ = Phase::Asking;
    if (!session_.is_linked()) return want_server(*session_.pool());
    has_asked_on_own_leg_ = true;
    if (session_.leg_.server->transaction_status() != 'E') return run_asked_steps();
    // A failed transaction answers nothing but its end; the server says so to the client.
    verdict_ = {};
  }
  if (verdict_.kind != LOKADB_REFUSE) {
    BatchVerdict last_word = routing_.chain().review(*batch_, verdict_);
    if (last_word.kind == LOKADB_REFUSE) verdict_ = std::move(last_word);
  }
  phase_ = Phase::Decided;
}

void RoutedBatch::run_asked_steps() {
  std::vector<BatchStep*> steps;
  for (BatchStep& step : batch_->steps())
    if (!step.is_done && step.moment == LOKADB_BEFORE) steps.push_back(&step);
  query_ = std::make_unique<LegQuery>(*session_.leg_.server, std::move(steps), std::vector<std::string>(),
                                      [this](const LegQuery::Result& r) { asked_steps_done(r); });
  query_->start();
}

void RoutedBatch::asked_steps_done(const LegQuery::Result& result) {
  session_.worker.loop.bury(std::move(query_));
  if (result.is_lost) return on_server_lost(*session_.leg_.server, result.lost_because);
  bool has_ended_transaction = has_asked_on_own_leg_ && session_.leg_.server->transaction_status() == 'E';
  if (std::exchange(has_asked_on_own_leg_, false))
    session_.leg_.server->stop_capture();
  else
    give_back_leg();
  if (is_abandoned_) return;
  if (result.error_code == kStaleRouting && has_ended_transaction) {
    // What was done in it is undone, so the batch cannot begin anew.
    fail(plain_error("40001", "the routing of the organization has changed; try again"));
  } else if (result.error_code == kStaleRouting) {
    decide_anew();
    return;
  } else if (!result.error_code.empty()) {
    fail_with(result.error);
  } else {
    if (batch_->context().client_encoding.empty()) routing_.know_settings(batch_->context());
    follow(routing_.chain().go_on(*batch_));
  }
  if (can_be_acted_on()) routing_.run_has_news();
}

// ------------------------------------------------------------------ servers

// Goes on in server_is_there(), now or when there is one.
void RoutedBatch::want_server(Pool& pool) {
  session_.wanted_pool_ = &pool == session_.pool() ? nullptr : &pool;
  session_.request_time = wall_us();
  switch (session_.pooler.acquire(session_)) {
    case Acquired::Linked:
      return server_is_there();
    case Acquired::Queued:
    case Acquired::Refused:
      return;
  }
}

void RoutedBatch::server_given(ServerConnection& server) {
  // Answers to anything but our own settings are for us from now on.
  if (phase_ == Phase::Running) server.capture(*this);
}

void RoutedBatch::resumed() {
  if (must_start_over_) return start_over();
  if (phase_ == Phase::Stale) {
    if (session_.state() == ClientState::Idle || !session_.leg_.server->owes_answers()) decide_anew();
    return;
  }
  if (phase_ == Phase::InCloud && has_begun_) {
    if (cloud_ != nullptr) send_to_cloud();
    return;
  }
  if (session_.state() == ClientState::Active && session_.is_linked() && !session_.leg_.server->owes_answers() &&
      query_ == nullptr)
    server_is_there();
}

void RoutedBatch::server_is_there() {
  session_.wanted_pool_ = nullptr;
  switch (phase_) {
    case Phase::Asking:
      return run_asked_steps();
    case Phase::InCloud:
      return begin_in_cloud();
    case Phase::CloudFirst:
      keep_cloud_leg();
      return run_direct();
    case Phase::Running:
      return replay();
    case Phase::Checking:
      return run_checks(*session_.leg_.server);
    default:
      return;
  }
}

// The session's server becomes the one beside the organization's.
void RoutedBatch::keep_cloud_leg() {
  cloud_leg_ = std::exchange(session_.leg_.server, nullptr);
  session_.enter(ClientState::Idle);
}

// It becomes the session's again.
void RoutedBatch::return_own_leg() {
  if (!is_own_leg_ || cloud_leg_ == nullptr) return;
  is_own_leg_ = false;
  session_.leg_.server = std::exchange(cloud_leg_, nullptr);
  session_.enter(ClientState::Active);
}

void RoutedBatch::release_cloud_leg() {
  if (cloud_leg_ == nullptr) return;
  if (is_own_leg_) return cloud_leg_->stop_capture();
  ServerConnection* server = std::exchange(cloud_leg_, nullptr);
  if (!server->is_clean()) {
    server->unlink();
    return server->close("plugin left a transaction open");
  }
  server->unlink();
  server->give_back();
}

void RoutedBatch::give_back_leg() {
  if (!session_.leg_.server->is_clean()) return close_leg("server left in an unknown state");
  ServerConnection* server = std::exchange(session_.leg_.server, nullptr);
  session_.enter(ClientState::Idle);
  server->unlink();
  server->give_back();
}

void RoutedBatch::close_leg(const char* why) {
  ServerConnection* server = std::exchange(session_.leg_.server, nullptr);
  session_.enter(ClientState::Idle);
  server->unlink();
  server->close(why);
}

bool RoutedBatch::server_refused(const Error& error) {
  session_.wanted_pool_ = nullptr;
  if (phase_ != Phase::Running) return false;  // the client's own database
  session_.enter(ClientState::Idle);
  log_fault(error.log_text());
  decide_without_target(error.log_text(), plain_error(sqlstate::kConnectionFailure,
                                                      "could not connect to the database of the organization"));
  return true;
}

// Each statement would write one while the organization's database is away.
void RoutedBatch::log_fault(const std::string& fault) {
  std::string left_out;
  if (session_.database()->target_faults.is_due(now_us(), left_out))
    log_line(LogLevel::Warning, "%s organization %s: %s%s", session_.log_name().c_str(), verdict_.organization.c_str(),
             fault.c_str(), left_out.c_str());
}

// Once more with this known: there may be another way.
void RoutedBatch::decide_without_target(const std::string& fault, const Error& if_there_is_none) {
  bool is_first = batch_->context().target_fault.empty();
  drop_legs();
  leave_gate();
  restore_names();
  if (is_first) {
    batch_->context().target_fault = fault;
    batch_->start_anew();
    decide();
  }
  if (!is_first || verdict_.kind == LOKADB_DIRECT) fail(if_there_is_none);
  routing_.run_has_news();
}

// The organization's answer may not be what the client has a right to expect.
void RoutedBatch::result_differs(const std::string& how) {
  if (BatchWatch* watch = routing_.watch()) watch->forget(false);
  held_.clear();
  decide_without_target(how, plain_error("40001", "the organization's tables differ from the cloud's"));
}

void RoutedBatch::on_server_lost(ServerConnection& server, const Error& error) {
  if (is_abandoned_) return;
  if (&server == session_.leg_.server) {
    session_.leg_.server = nullptr;
    session_.enter(ClientState::Idle);
  }
  bool is_cloud = phase_ != Phase::Running;
  if (is_cloud) return session_.close(error);
  log_fault(error.log_text());
  fail(plain_error(sqlstate::kConnectionFailure, "the connection to the database of the organization was lost"));
  routing_.run_has_news();
}

void RoutedBatch::abandon() {
  is_abandoned_ = true;
  leave_gate();
  if (ServerConnection* server = std::exchange(cloud_leg_, nullptr)) server->client_left();
}

// ------------------------------------------------------------------ ends and new beginnings

// The organization's server is closed if it works for us still: nobody waits for what it does.
void RoutedBatch::drop_legs() {
  if (phase_ == Phase::Running && session_.is_linked()) {
    ServerConnection* server = std::exchange(session_.leg_.server, nullptr);
    session_.enter(ClientState::Idle);
    bool is_clean = server->is_clean();
    server->unlink();
    is_clean ? server->give_back() : server->close("answer is not wanted any more");
  }
  release_cloud_leg();
  return_own_leg();
}

void RoutedBatch::start_over() {
  must_start_over_ = false;
  if (phase_ != Phase::Running) return;
  bool has_own = is_own_leg_;
  drop_legs();
  restore_names();
  held_.clear();
  if (has_own) return start();
  phase_ = Phase::CloudFirst;
  if (enter_gate(true)) want_server(*session_.pool());
}

// The routing is another than it was when this batch was decided.
void RoutedBatch::decide_anew() {
  if (BatchWatch* watch = routing_.watch()) watch->forget(false);
  drop_legs();
  restore_names();
  if (++stale_gates_ > kMaxStaleGates) {
    fail(plain_error("40001", "the routing of the organization keeps changing; try again"));
    return routing_.run_has_news();
  }
  batch_->context().attempt = static_cast<std::uint32_t>(stale_gates_);
  batch_->start_anew();
  held_.clear();
  phase_ = Phase::Refreshing;
  Pooler& pooler = session_.pooler;
  if (!pooler.refresh_feeds) return feeds_are_fresh();
  {
    std::lock_guard guard(pooler.lock);
    ++session_.in_flight;
  }
  pooler.refresh_feeds(session_.database()->name, [session = &session_] {
    session->worker.loop.post([session] {
      if (session->arrived()) session->feeds_are_fresh();
    });
  });
}

void RoutedBatch::feeds_are_fresh() {
  decide();
  if (can_be_acted_on()) routing_.run_has_news();
}

void RoutedBatch::restore_names() {
  for (const auto& [name, statement] : names_before_) {
    if (statement)
      session_.statements().set(name, statement);
    else
      session_.statements().remove(name);
  }
}

void RoutedBatch::fail(const Error& error) {
  ByteBuffer out;
  write_error(out, error);
  fail_with(out.bytes());
}

void RoutedBatch::fail_with(Bytes error_message) {
  if (BatchWatch* watch = routing_.watch()) watch->forget(true);
  drop_legs();
  restore_names();
  session_.stream_.send_copy(error_message);
  routing_.end_batch_after_error(read_.last);
  finish();
}

void RoutedBatch::finish() {
  return_own_leg();
  bool is_outside = batch_->context().transaction_status == 'I';
  if (BatchWatch* watch = routing_.watch()) is_outside ? watch->ready('I') : watch->tell();
  leave_gate();
  phase_ = Phase::Over;
  held_ = {};
  routing_.run_has_news();
}

}  // namespace lokadb
