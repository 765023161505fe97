// A batch that goes to the client's own database with something of the plugins' in it, and its place at the gate of an
// organization, which direct reads need for their checks as well.
#include "base/clock.h"
#include "pool/cloud_batch.h"
#include "pool/pooler.h"
#include "pool/routed_batch.h"
#include "pool/routing.h"
#include "pool/worker.h"

namespace lokadb {

bool RoutedBatch::has_cloud_work() const {
  return verdict_.kind == LOKADB_CLOUD && (CloudBatch::has_work(*batch_) || lacks_unnamed());
}

// It begins with the unnamed statement of an earlier batch, which went to another server.
bool RoutedBatch::lacks_unnamed() const {
  if (!is_whole() || !read_.binds_earlier_unnamed || read_.unnamed_parse) return false;
  if (!session_.is_linked()) return true;
  const ServerConnection& server = *session_.leg_.server;
  return !server.owns_unnamed(session_.id) && server.transaction_status() != 'E';
}

void RoutedBatch::start_in_cloud() {
  phase_ = Phase::InCloud;
  is_in_cloud_ = true;
  has_begun_ = steps_are_answered_ = false;
  if (session_.is_linked()) return begin_in_cloud();
  if (verdict_.organization.empty() || enter_gate(true)) want_server(*session_.pool());
}

void RoutedBatch::begin_in_cloud() {
  has_begun_ = true;
  ServerConnection& server = *session_.leg_.server;
  routing_.replaced().clear();
  cloud_ = std::make_unique<CloudBatch>(session_, *batch_, messages_, static_cast<bool>(gate_));
  if (!is_whole()) {
    cloud_->send_steps_alone();
    cloud_ = nullptr;
    return;
  }
  if (read_.binds_earlier_unnamed && !read_.unnamed_parse && !cloud_->replaces_unnamed())
    routing_.send_unnamed(server, cloud_->unnamed_in_other_words());
  send_to_cloud();
}

void RoutedBatch::send_to_cloud() {
  CloudBatch::Sent sent = cloud_->send();
  if (sent == CloudBatch::Sent::Waits) return;
  bool has_steps = cloud_->has_steps();
  cloud_ = nullptr;
  if (session_.state() == ClientState::Closed) return;
  if (sent == CloudBatch::Sent::Failed)
    return session_.leg_.server->close_with(plain_error("XX000", "the batch could not be sent as it was decided"));
  if (!has_steps || steps_are_answered_) steps_passed();
}

// The answers that follow go to the client as they come.
void RoutedBatch::steps_passed() {
  if (phase_ != Phase::InCloud) return;
  steps_are_answered_ = true;
  leave_gate();
  if (cloud_ != nullptr) return;
  phase_ = Phase::Over;
  routing_.run_has_news();
}

bool RoutedBatch::step_failed(std::string_view code, bool is_first) {
  // An open transaction (of a batch that ended in Flush, too) has failed with what was done in it.
  bool is_alone = batch_->context().transaction_status == 'I' && read_.last != 'H';
  bool is_stale = code == kStaleRouting && phase_ == Phase::InCloud && is_first && is_alone;
  leave_gate(code == kPaused);
  has_failed_ = true;
  if (!is_stale && cloud_ != nullptr) {
    // The rest goes on all the same: the server skips it, and answers the Sync at its end.
    session_.worker.loop.resume_later(session_);
    return false;
  }
  phase_ = is_stale ? Phase::Stale : Phase::Over;
  if (!is_stale) routing_.run_has_news();
  return is_stale;
}

void RoutedBatch::server_is_ready() {
  if (phase_ == Phase::Stale && !is_abandoned_) session_.worker.loop.resume_later(session_);
}

// ------------------------------------------------------------------ the gate's place

// False: not now, or gate_has_news() goes on.
bool RoutedBatch::enter_gate(bool waits) {
  if (gate_) return true;
  Pool& pool = *session_.pool();
  if (waits) count_message(1);  // the session lives until it is called
  auto answer =
      session_.pooler.gates.enter(pool, pool.settings.size, verdict_.organization, session_, waits, now_us(), gate_);
  waits_for_gate_ = answer == Gates::Answer::Waits;
  if (waits && !waits_for_gate_) count_message(-1);
  return answer == Gates::Answer::Entered;
}

void RoutedBatch::leave_gate(bool is_paused) {
  if (std::exchange(waits_for_gate_, false) && session_.pooler.gates.forget(session_)) count_message(-1);
  lokadb::leave_gate(session_.pooler, gate_, is_paused);
}

void RoutedBatch::count_message(int change) {
  std::lock_guard guard(session_.pooler.lock);
  session_.in_flight += change;
}

void leave_gate(Pooler& pooler, Gates::Place& place, bool is_paused) {
  if (!place) return;
  int size = place.pool->settings.size;
  for (Gates::Called& called : pooler.gates.leave(place, size, is_paused, now_us())) {
    ClientSession* session = called.session;
    session->worker.loop.post([session, given = std::move(called.place)]() mutable {
      Pooler& its_pooler = session->pooler;
      if (session->arrived() && session->routing() != nullptr)
        session->routing()->gate_has_news(std::move(given));
      else
        leave_gate(its_pooler, given, false);
    });
  }
}

void RoutedBatch::gate_has_news(Gates::Place place) {
  bool is_wanted = std::exchange(waits_for_gate_, false) && !is_abandoned_;
  if (!is_wanted) return lokadb::leave_gate(session_.pooler, place, false);
  gate_ = std::move(place);
  if (gate_) return want_server(*session_.pool());
  fail(plain_error(kPaused, "lokadb: organization " + verdict_.organization + " is paused"));
  routing_.run_has_news();
}

}  // namespace lokadb
