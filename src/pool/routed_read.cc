// A read that goes to one organization: its messages there, its answer, and the checks in the cloud that let the answer
// go to the client.
#include <algorithm>

#include "base/log.h"
#include "pool/pooler.h"
#include "pool/routed_batch.h"
#include "pool/routing.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::string_view kChangedPlan = "0A000";
std::string fails_there(const std::string& code) { return "a statement fails there with SQLSTATE " + code; }
constexpr char kOtherForm[] = "a statement's parameters or columns differ from the cloud's";

std::string code_of(Bytes error) {
  auto fields = parse_error_fields(error.subspan(std::min(error.size(), kHeaderSize)));
  return fields ? std::string(fields->code) : std::string();
}

// Of an error that says something about the organization's tables, and perhaps nothing about the cloud's: syntax and
// names (class 42), and a plan whose columns are others now (0A000). Empty: another error.
std::string code_of_its_own(Bytes error) {
  std::string code = code_of(error);
  return code.starts_with("42") || code == kChangedPlan ? code : std::string();
}

// With this ReadyForQuery.
bool leaves_transaction_open(Bytes message) {
  return static_cast<char>(message[0]) == 'Z' && message.size() > kHeaderSize &&
         static_cast<char>(message[kHeaderSize]) != 'I';
}
}  // namespace

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
  failed_there_.clear();
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

// What the client did in it next would be done in the cloud, and outside of it. So it has to learn that there is none.
void RoutedBatch::undo_transaction(char status) {
  log_line(LogLevel::Error, "%s direct batch left a transaction open", session_.log_name().c_str());
  ByteBuffer error, ready;
  write_error(error, plain_error("25001", "a transaction cannot be left open in the database of an organization"));
  write_ready_for_query(ready, 'I');
  if (status == 'T') on_answer(error.bytes(), true);  // after an error of its own the client knows that it has failed
  on_answer(ready.bytes(), true);
}

void RoutedBatch::on_answer(Bytes bytes, bool begins) {
  if (is_abandoned_ || must_start_over_ || phase_ != Phase::Running) return;
  if (begins && leaves_transaction_open(bytes)) return undo_transaction(static_cast<char>(bytes[kHeaderSize]));
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
  if (begins && static_cast<char>(bytes[0]) == 'E') failed_there_ = code_of(bytes);
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

void RoutedBatch::on_ready(ServerConnection&, char) {
  if (is_abandoned_) return;
  if (must_start_over_) return;
  is_complete_ = true;
  refused_there_ == kChangedPlan ? close_leg("its prepared statements have changed") : give_back_leg();
  if (!refused_there_.empty()) return result_differs(fails_there(refused_there_));
  if (check_ == Check::None) begin_check();
  if (check_ == Check::Passed) return finish();
  if (check_ == Check::Wanted) {
    phase_ = Phase::Checking;
    if (enter_gate(true)) want_server(*session_.pool());
  }
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
    // What both find wrong with a statement is the client's mistake, and says nothing about tables.
    if (!result.error_code.empty() && !failed_there_.empty()) return result_differs(fails_there(failed_there_));
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

}  // namespace lokadb
