// A batch that plugins have a say in, from its first verdict to its end: steps that they ask for, and reads that go
// straight to the database of one organization.
//
// A direct read goes to the organization at once, on a connection of its own pool. Its answer is held back. When the
// first bytes prove that its snapshot is taken, the checks (steps of moment LOKADB_CHECK) run in the cloud; what they
// pass is delivered, and what follows streams. While it holds the organization's connection it takes one of the cloud
// only if one is free at once; else it gathers its answer, gives the connection back and waits for the cloud alone.
// If the answer is too large for that, it starts over with the cloud's connection first. So nobody waits for the
// cloud while holding a connection to an organization.
//
// Sources: routed_batch.cc (verdicts, servers, ends), routed_read.cc (a direct read and its checks), routed_in_cloud.cc
// (the client's own database, and the place at the gate).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "net/loop.h"
#include "plugin/batch.h"
#include "pool/answer_sink.h"
#include "pool/batch_reader.h"
#include "pool/client_session.h"
#include "pool/gates.h"
#include "pool/leg_query.h"
#include "pool/result_forms.h"

namespace lokadb {

class CloudBatch;
class Routing;

// SQLSTATE of a step that finds the routing to be another than plugins thought; and the organization to be paused.
inline constexpr std::string_view kStaleRouting = "LK001";
inline constexpr std::string_view kPaused = "55P03";
// A fault that ends the batch, not the session.
inline Error plain_error(std::string_view state, std::string text) {
  return {SqlState(state), Severity::Error, std::move(text), {}};
}
// Gives the place back, and tells those whose turn it is.
void leave_gate(Pooler& pooler, Gates::Place& place, bool is_paused);

class RoutedBatch final : public AnswerSink, public Buriable {
 public:
  RoutedBatch(ClientSession& session, Routing& routing, std::vector<std::byte> messages, ReadBatch read,
              BatchContext context);
  ~RoutedBatch() override;

  // Asks the chain; steps that it asks for are run, and the chain is asked again.
  void decide();
  bool can_be_acted_on() const { return phase_ == Phase::Decided || phase_ == Phase::Over; }
  bool is_over() const { return phase_ == Phase::Over; }
  bool has_failed() const { return has_failed_; }  // a step has
  const BatchVerdict& verdict() const { return verdict_; }
  const std::vector<std::byte>& messages() const { return messages_; }
  const ReadBatch& read() const { return read_; }
  bool is_whole() const { return batch_->context().is_whole; }
  // Verdict LOKADB_DIRECT.
  void start();
  // The client's own database, with steps in front of the statements, or statements in other words.
  bool has_cloud_work() const;
  bool lacks_unnamed() const;
  void start_in_cloud();
  bool is_in_cloud() const { return is_in_cloud_; }

  // While it runs there: all steps have been answered, or are skipped after an error; or one has failed. True: nobody
  // is told, and the batch will be decided anew.
  void steps_passed();
  bool step_failed(std::string_view code, bool is_first);
  bool is_stale() const { return phase_ == Phase::Stale; }
  void server_is_ready();
  // That its gate is asked on now, beside the organization's; null: none.
  ServerConnection* gate_server() const { return check_ == Check::Running ? cloud_leg_ : nullptr; }

  // From the session.
  void resumed();
  void server_given(ServerConnection& server);
  void parameters_set(ServerConnection& server);
  bool server_refused(const Error& error);
  void feeds_are_fresh();
  void gate_has_news(Gates::Place place);
  void abandon();

  // The organization's answer.
  void on_answer(Bytes bytes, bool begins) override;
  void on_ready(ServerConnection& server, char status) override;
  void on_server_lost(ServerConnection& server, const Error& error) override;
  bool is_blocked() const override;
  bool wants_forms() const override { return forms_.has_value(); }
  void on_described(std::uint64_t statement, RowsMark form, RowsMark rows) override;

 private:
  enum class Phase : std::uint8_t {
    Deciding,
    Asking,      // has or wants a server of the cloud, for steps of LOKADB_ASK
    Decided,     // verdict_ is there
    InCloud,     // has or wants a server of the cloud, for the whole batch
    Stale,       // a step there has found the routing to be another
    CloudFirst,  // wants a server of the cloud, to have it before the organization's
    Running,     // has or wants a server of the organization
    Refreshing,  // waits for what plugins know of the cloud to be asked anew
    Checking,    // has the whole answer, and has or wants a server of the cloud
    Over,
  };
  enum class Check : std::uint8_t { None, Wanted, Preparing, Running, Passed };

  void follow(BatchVerdict verdict);
  void want_server(Pool& pool);
  void server_is_there();
  void run_asked_steps();
  void asked_steps_done(const LegQuery::Result& result);
  void run_direct();
  void replay();
  void unnamed_was_sent();
  void note_sent(char type, Bytes body);
  void note_used(std::string_view name);
  void undo_transaction(char status);
  bool is_proof(char type);
  void take_answer(Bytes bytes, bool begins);
  bool enter_gate(bool waits);
  void count_message(int change);
  void leave_gate(bool is_paused = false);
  bool has_checks() const;
  bool checks_are_done() const;
  void begin_check();
  void run_checks(ServerConnection& server);
  void checks_done(const LegQuery::Result& result);
  void deliver();
  void start_over();
  void decide_anew();
  void log_fault(const std::string& fault);
  void decide_without_target(const std::string& fault, const Error& if_there_is_none);
  void result_differs(const std::string& how);
  void give_back_leg();
  void close_leg(const char* why);
  void drop_legs();
  void fail(const Error& error);
  void fail_with(Bytes error_message);
  void finish();
  void restore_names();
  void keep_cloud_leg();
  void return_own_leg();
  void release_cloud_leg();
  void begin_in_cloud();
  void send_to_cloud();

  ClientSession& session_;
  Routing& routing_;
  const std::vector<std::byte> messages_;
  const ReadBatch read_;
  std::unique_ptr<Batch> batch_;
  BatchVerdict verdict_;
  Phase phase_ = Phase::Deciding;
  Check check_ = Check::None;
  std::unique_ptr<LegQuery> query_;
  ServerConnection* cloud_leg_ = nullptr;  // beside the organization's, which is the session's leg
  bool is_in_cloud_ = false;
  std::unique_ptr<CloudBatch> cloud_;  // until all of it has been sent there
  bool steps_are_answered_ = false;
  bool has_begun_ = false;
  bool has_failed_ = false;
  Gates::Place gate_;  // while it has or wants a server of the cloud for its checks
  bool waits_for_gate_ = false;
  bool is_own_leg_ = false;  // it was the session's before, and becomes so again
  bool has_asked_on_own_leg_ = false;
  bool is_replaying_ = false;
  bool is_complete_ = false;  // all of the answer has come
  bool must_start_over_ = false;
  std::string refused_there_;  // SQLSTATE of an error that the cloud may not have
  std::string failed_there_;   // of any error
  bool cloud_first_ = false;
  bool is_abandoned_ = false;
  std::uint32_t binds_seen_ = 0;
  std::uint32_t ended_ = 0;  // statements of a simple Query
  int stale_gates_ = 0;
  std::optional<ResultForms> forms_;  // of a direct batch with checks
  std::vector<std::byte> held_;
  std::vector<std::pair<std::string, StatementPtr>> names_before_;
};

}  // namespace lokadb
