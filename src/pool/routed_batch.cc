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
constexpr std::string_view kPaused = "55P03";
constexpr std::string_view kChangedPlan = "0A000";
constexpr char kOtherForm[] = "a statement's parameters or columns differ from the cloud's";

Error plain_error(std::string_view state, std::string text, std::string to_log = {}) {
  return {SqlState(state), Severity::Error, std::move(text), std::move(to_log)};
}

// Of an error that says something about the organization's tables, and perhaps nothing about the cloud's: syntax and
// names (class 42), and a plan whose columns are others now (0A000). Empty: another error.
std::string code_of_its_own(Bytes error) {
  auto fields = parse_error_fields(error.subspan(std::min(error.size(), kHeaderSize)));
  bool is_its_own = fields && (fields->code.starts_with("42") || fields->code == kChangedPlan);
  return is_its_own ? std::string(fields->code) : std::string();
}
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
  if (std::exchange(has_asked_on_own_leg_, false))
    session_.leg_.server->stop_capture();
  else
    give_back_leg();
  if (is_abandoned_) return;
  if (result.error_code == kStaleRouting) {
    decide_anew();
    return;
  }
  if (!result.error_code.empty()) {
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

// ------------------------------------------------------------------ a direct read

void RoutedBatch::start() {
  if (session_.is_linked()) {  // session pooling: it has a server of the cloud already
    is_own_leg_ = true;
    keep_cloud_leg();
  }
  run_direct();
}

void RoutedBatch::run_direct() {
  phase_ = Phase::Running;
  check_ = Check::None;
  held_.clear();
  binds_seen_ = ended_ = 0;
  if (BatchWatch* watch = routing_.watch()) watch->begin(read_.ends);
  if (has_checks()) forms_.emplace(batch_->statements(), batch_->replacements(), session_.database()->forms).begin();
  is_complete_ = must_start_over_ = false;
  refused_there_.clear();
  want_server(session_.pooler.target_pool(batch_->targets()[verdict_.target]));
}

// The client's messages, as if they came now.
void RoutedBatch::replay() {
  ServerConnection& server = *session_.leg_.server;
  is_replaying_ = true;
  if (read_.binds_earlier_unnamed && !read_.unnamed_parse) {
    routing_.send_unnamed(server);
    unnamed_was_sent();
  }
  Bytes rest = messages_;
  Outcome outcome = Outcome::Done;
  while (!rest.empty() && outcome == Outcome::Done && session_.leg_.server == &server) {
    std::size_t used = 0;
    MessageHead head = *peek_head(rest);
    Bytes message = rest.first(kHeaderSize + head.body);
    outcome = session_.handle_request(head, rest, used);
    rest = rest.subspan(used);
    if (forms_ && outcome == Outcome::Done) note_sent(head.type, message.subspan(kHeaderSize));
  }
  if (forms_) {
    for (const BatchStatement& statement : batch_->statements())
      if (statement.form == LOKADB_PARSE) note_used(statement.name);
  }
  is_replaying_ = false;
  if (outcome == Outcome::Done || is_abandoned_ || session_.state() == ClientState::Closed) return;
  log_line(LogLevel::Error, "%s batch for organization %s could not be sent", session_.log_name().c_str(),
           verdict_.organization.c_str());
  fail(plain_error("XX000", "the batch could not be sent to the database of the organization"));
  routing_.run_has_news();
}

void RoutedBatch::unnamed_was_sent() {
  if (!forms_) return;
  forms_->unnamed_sent();
  session_.leg_.server->ask_for_form("", 0);
}

// A message of the batch has gone to the organization.
void RoutedBatch::note_sent(char type, Bytes body) {
  MessageReader reader(body);
  if (type == 'P' && reader.cstring().empty()) return unnamed_was_sent();
  if (type != 'B') return;
  reader.cstring();  // the portal
  note_used(reader.cstring());
}

void RoutedBatch::note_used(std::string_view name) {
  const ClientStatements::Known& known = session_.statements().look_up(name);
  forms_->statement_used(known.statement != nullptr ? known.statement->number() : 0);
  if (known.statement != nullptr && known.statement->has_settled_rows()) forms_->client_expects(known.rows);
}

void RoutedBatch::on_described(std::uint64_t statement, RowsMark form, RowsMark rows) {
  if (forms_) forms_->described(statement, form, rows);
}

// Whether the snapshot of the batch's last statement is taken when this message has come.
bool RoutedBatch::is_proof(char type) {
  if (type == 'E') return true;
  if (read_.bind_count == 0) {
    if (std::string_view("TCID").find(type) == std::string_view::npos) return false;
    // Of several statements in a Query each takes its own when its turn has come.
    bool is_last = ended_ + 1 >= batch_->statements().size();
    if (type == 'C' || type == 'I') ++ended_;
    return is_last;
  }
  return type == '2' && ++binds_seen_ == read_.bind_count;
}

void RoutedBatch::on_answer(Bytes bytes, bool begins) {
  if (is_abandoned_ || must_start_over_ || phase_ != Phase::Running) return;
  BatchWatch* watch = routing_.watch();
  if (watch != nullptr && begins) watch->answered(bytes);
  if (begins && static_cast<char>(bytes[0]) == 'G') {  // the data that the client would send now belongs to no batch
    fail(plain_error("0A000", "COPY ... FROM STDIN cannot be sent straight to the database of an organization"));
    return routing_.run_has_news();
  }
  if (forms_ && begins)
    forms_->answered(static_cast<char>(bytes[0]), bytes.subspan(std::min(bytes.size(), kHeaderSize)));
  std::vector<std::byte> translated;
  if (begins && static_cast<char>(bytes[0]) == 'T') {
    translated.assign(bytes.begin(), bytes.end());
    if (!session_.leg_.server->table_map().translate(translated)) {
      fail(plain_error(sqlstate::kProtocolViolation, "the description of the result could not be read"));
      return routing_.run_has_news();
    }
    bytes = translated;
  }
  take_answer(bytes, begins);
}

void RoutedBatch::take_answer(Bytes bytes, bool begins) {
  if (check_ == Check::Passed) {
    session_.stream_.send_copy(bytes);
    return;
  }
  held_.insert(held_.end(), bytes.begin(), bytes.end());
  if (forms_ && check_ == Check::None && begins && static_cast<char>(bytes[0]) == 'E')
    refused_there_ = code_of_its_own(bytes);
  if (!refused_there_.empty()) return;  // all is clear when the server is ready
  if (check_ == Check::None && begins && is_proof(static_cast<char>(bytes[0]))) begin_check();
  if (check_ == Check::Passed || held_.size() <= session_.pooler.options().hold_back_buffer) return;
  // No room, and nobody in the cloud to ask meanwhile.
  if (check_ == Check::Wanted || check_ == Check::None) {
    must_start_over_ = true;
    session_.worker.loop.resume_later(session_);
  }
}

bool RoutedBatch::is_blocked() const {
  if (check_ == Check::Passed) return session_.stream_.is_blocked();
  return must_start_over_ || held_.size() > session_.pooler.options().hold_back_buffer;
}

void RoutedBatch::on_ready(ServerConnection& server, char status) {
  if (is_abandoned_) return;
  if (must_start_over_) return;
  is_complete_ = true;
  if (status != 'I') log_line(LogLevel::Error, "%s direct batch left a transaction open", server.log_name().c_str());
  refused_there_ == kChangedPlan ? close_leg("its prepared statements have changed") : give_back_leg();
  if (!refused_there_.empty()) return result_differs("a statement fails there with SQLSTATE " + refused_there_);
  if (check_ == Check::None) begin_check();
  if (check_ == Check::Passed) return finish();
  if (check_ == Check::Wanted) {
    phase_ = Phase::Checking;
    if (enter_gate(true)) want_server(*session_.pool());
  }
}

// ------------------------------------------------------------------ in the cloud

bool RoutedBatch::has_cloud_work() const { return verdict_.kind == LOKADB_CLOUD && CloudBatch::has_work(*batch_); }

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
  cloud_ = std::make_unique<CloudBatch>(session_, *batch_, messages_);
  if (!is_whole()) {
    cloud_->send_steps_alone();
    cloud_ = nullptr;
    return;
  }
  if (read_.binds_earlier_unnamed && !read_.unnamed_parse && !cloud_->replaces_unnamed()) routing_.send_unnamed(server);
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

// ------------------------------------------------------------------ the check in the cloud

bool RoutedBatch::has_checks() const {
  const auto& steps = batch_->steps();
  return std::any_of(steps.begin(), steps.end(), [](const BatchStep& s) { return s.moment == LOKADB_CHECK; });
}

bool RoutedBatch::checks_are_done() const {
  const auto& steps = batch_->steps();
  return std::all_of(steps.begin(), steps.end(),
                     [](const BatchStep& s) { return s.moment != LOKADB_CHECK || s.is_done; });
}

void RoutedBatch::begin_check() {
  if (!has_checks()) {
    check_ = Check::Passed;
    return deliver();
  }
  if (cloud_leg_ == nullptr && !is_complete_ && enter_gate(false)) {
    cloud_leg_ = session_.pooler.take_free(session_);
    if (cloud_leg_ == nullptr) leave_gate();
  }
  if (cloud_leg_ == nullptr) {
    check_ = Check::Wanted;
    return;
  }
  if (!is_own_leg_ && !cloud_leg_->agrees_with(session_.parameters()) && cloud_leg_->set_parameters_for(session_)) {
    check_ = Check::Preparing;
    return;
  }
  run_checks(*cloud_leg_);
}

void RoutedBatch::parameters_set(ServerConnection& server) {
  if (&server == cloud_leg_ && check_ == Check::Preparing) run_checks(server);
}

void RoutedBatch::run_checks(ServerConnection& server) {
  check_ = Check::Running;
  std::vector<BatchStep*> steps;
  for (BatchStep& step : batch_->steps())
    if (step.moment == LOKADB_CHECK) steps.push_back(&step);
  auto to_describe = forms_ ? forms_->to_ask() : std::vector<std::string>();
  query_ = std::make_unique<LegQuery>(server, std::move(steps), std::move(to_describe),
                                      [this](const LegQuery::Result& r) { checks_done(r); });
  query_->start();
}

void RoutedBatch::checks_done(const LegQuery::Result& result) {
  session_.worker.loop.bury(std::move(query_));
  if (is_abandoned_) return;
  if (result.is_lost) {
    if (phase_ == Phase::Checking) session_.leg_.server = nullptr;
    if (phase_ == Phase::Checking) session_.enter(ClientState::Idle);
    cloud_leg_ = nullptr;
    is_own_leg_ = false;
    drop_legs();
    leave_gate();
    return session_.close(result.lost_because);
  }
  if (phase_ == Phase::Checking)
    give_back_leg();
  else
    release_cloud_leg();
  leave_gate(result.error_code == kPaused);
  if (result.error_code == kStaleRouting) return decide_anew();
  // With an error of the statement's own text, too: the organization had none.
  if (forms_ && (result.error_code.empty() || checks_are_done()) && !forms_->settle(result.forms)) {
    log_fault(kOtherForm);
    return result_differs(kOtherForm);
  }
  if (!result.error_code.empty()) {
    drop_legs();
    fail_with(result.error);
    return routing_.run_has_news();
  }
  check_ = Check::Passed;
  deliver();
  if (is_complete_) return finish();
  if (session_.is_linked() && session_.leg_.server->stream().is_readable())
    session_.worker.loop.resume_later(*session_.leg_.server);
}

void RoutedBatch::deliver() {
  if (held_.empty()) return;
  session_.stream_.send_copy(held_);
  held_ = {};
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
