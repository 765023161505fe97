// One connection to a PostgreSQL server: its login, what it still owes, and the relay of its answers to the client
// it serves. Lives on one worker at a time; given from one to another only while free (ServerState::Moving).
//
// Sources: server_connection.cc (life), server_login.cc (connecting), server_startup.cc, server_lookup.cc (auth_query),
// server_relay.cc (answers), server_errors.cc (errors), server_send.cc (requests), server_settings.cc (what clients
// leave in the session).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "auth/server_auth.h"
#include "net/address.h"
#include "net/dns.h"
#include "net/input.h"
#include "net/stream.h"
#include "pool/answer_sink.h"
#include "pool/database.h"
#include "pool/parameters.h"
#include "pool/prepared.h"
#include "pool/replies.h"
#include "pool/session_residue.h"
#include "pool/states.h"
#include "pool/table_map.h"
#include "proto/message.h"

namespace lokadb {

class BatchWatch;
class Pooler;
class Worker;
struct OwnedTag;

class ServerConnection final : public StreamOwner,
                               public Buriable,
                               public ListHook<OwnedTag>,
                               public ListHook<IdleTag> {
 public:
  ServerConnection(Pooler& pooler, Pool& pool, Worker& worker);
  ~ServerConnection() override;

  Pooler& pooler;
  Pool& pool;
  const std::uint64_t id;
  Worker& worker() { return *worker_; }
  Stream& stream() { return stream_; }
  ServerState state() const { return state_.load(std::memory_order_relaxed); }
  bool set_state(ServerEvent event);  // false: not a legal move (logged; the caller closes)
  ClientSession* client() { return client_; }

  // --- life (server_connection.cc)
  void start_login();
  // Logs in for this client's replication, whose connection it is from now on, and nobody else's ever.
  void start_login_for(ClientSession& client);
  bool is_dedicated() const { return is_dedicated_; }
  // Closes the socket and gives up every role; the object dies at the end of the turn. `reason` goes to the log and,
  // if a client is linked, to that client. With `client_is_told` the client has had its error already.
  void close(const std::string& reason);
  void close_with(const Error& error);
  // The ParameterStatus messages of the login, tracked ones included; until it is over.
  void write_reported(ByteBuffer& out) const;
  void link(ClientSession& client);
  void unlink() {
    client_ = nullptr;
    sink_ = nullptr;
  }
  // Until it is unlinked, what it sends for the client goes to the sink.
  void capture(AnswerSink& sink) { sink_ = &sink; }
  void stop_capture() { sink_ = nullptr; }
  // Starts setting the tracked parameters that differ from the client's; false: none does.
  bool set_parameters_for(ClientSession& client);
  // What a request of the client may leave in the session.
  void note_residue(Residue residue) { residue_ |= residue & static_cast<Residue>(~residue::kCalls); }
  bool has_residue() const { return residue_ != residue::kNone; }
  // The transaction of the client has ended: true if the connection stays with it, because it is pinned, or because it
  // is asked for settings that may have changed first (ClientSession::settings_read).
  bool settle_residue();
  bool is_pinned() const { return is_pinned_; }
  // Asks for the user whom the linked client wants to be (auth_query), who is told in lookup_answered().
  void look_up_user();
  // The quick answer to the same question: the settings here were last found (or made) those of this very set.
  bool agrees_with(const ParameterSetPtr& set) const { return set == agrees_with_; }
  // The client has gone: goes on alone with what was asked (Leaving), or closes.
  void client_left();
  // Free for another: runs a reset query first where one is due, then goes back to the pool. Both wait until all that
  // was read together with the last answer has been looked at, so that nothing of it meets the next client.
  void give_back();
  void release();
  void test_before_use();
  // While idle: something has come that nobody asked for, or the end. It must be looked at before a client has the
  // connection, whose answer it would be taken for.
  bool has_unasked_input() const;
  void leave_worker();
  void join_worker(Worker& worker);
  // Its login, with what is asked right behind it, is not over yet [pool lock].
  bool is_logging_in = true;
  // Of a database that plugins send batches to: what its tables are in the client's own database.
  const TableMap& table_map() const { return table_map_; }
  // Made under settings that hold no more: to be closed at the next chance.
  bool is_obsolete() const { return generation_ != pool.generation; }
  void make_obsolete() { generation_ = pool.generation - 1; }  // world stopped
  // Messages from other threads under way to this connection [pool lock]; while there are any, the object lives.
  int in_flight = 0;
  // One of them has arrived: true if the connection is still there, else it has been buried now.
  bool arrived();

  // --- requests (server_send.cc): what the client session forwards. Each notes the answer to come.
  // Null: the server ignores this request (it skips to the next Sync), and what it would have changed is undone.
  Expected* expect(Request request, bool for_client = true, std::unique_ptr<StatementUndo> undo = nullptr);
  void forward(Bytes bytes) { stream_.send(bytes); }
  // A request that uses a prepared statement of the client.
  void expect_use(Request request, const PreparedStatement& statement) {
    expect_plain(request);
    if (!skips_until_sync_) replies_.back().statement = statement.number();
  }
  // The usual case of expect(): a request of the client, nothing to undo.
  void expect_plain(Request request) {
    if (skips_until_sync_ || query_started == 0 || request == Request::Sync)
      expect(request);
    else
      replies_.push_plain(request);
  }
  // The newest entry; null: none.
  Expected* last_expected() { return replies_.empty() ? nullptr : &replies_.back(); }
  // i < outstanding_count(); 0: the oldest.
  Expected& expected_at(std::size_t i) { return replies_.at(i); }
  // Before a client's Bind or Describe of its statement, of whose rows it was told so much: makes sure that the server
  // has it, and that its rows are still those.
  enum class Fitness { Fit, Asked, Unfit };  // Asked: to be called again when the server has answered
  Fitness prepare_for(const ClientStatements::Known& known);
  // Our own Describe of a statement just sent (number 0: the unnamed one), whose answer the sink is told.
  void ask_for_form(std::string_view name, std::uint64_t number);
  // A request whose failure tells the client that the rows have changed; to be sent with a name that no statement has.
  void expect_changed_rows(Request request, const PreparedStatement& statement);
  // Makes sure the server has the statement (sends our own Parse if not) and marks it used.
  void ensure_prepared(const StatementPtr& statement, bool even_retired = false);
  // The same ahead of a Query that names it, with a Sync of our own where something was sent.
  void ensure_prepared_for_query(const StatementPtr& statement);
  // Takes the statement away, so that a Query can make it anew under its name.
  void drop_prepared_for_query(const StatementPtr& statement);
  void expect_query(std::unique_ptr<StatementUndo> undo);
  void send_own_sync();
  // An empty statement under this name (SQL), which a DEALLOCATE of the client's takes away again.
  static constexpr char kThrowaway[] = "pgbouncer_throwaway";
  static constexpr char kNoStatement[] = "PGBOUNCER_0";  // a name that none has
  void prepare_throwaway();
  void send_parse(const PreparedStatement& statement);
  void note_prepared(const StatementPtr& statement);  // a client's own Parse of it is being sent; makes room
  bool has_prepared(const PreparedStatement& statement) const { return statements_.has(statement); }
  // Gives the client the answers that are given here, and not by the server, as far as no others stand before them.
  void skip_silent_heads() {
    if (!replies_.empty() && is_silent(replies_.front().request)) answer_silent_heads();
  }
  // Who sent the unnamed statement that the server has; others must not run it. `by`: the request that made it so.
  void set_unnamed_owner(std::uint64_t client_id, Expected* by);
  bool owns_unnamed(std::uint64_t client_id) const { return unnamed_owner_ == client_id; }
  void set_unnamed_residue(Residue residue) { unnamed_residue_ = residue; }
  void add_unnamed_residue(Residue residue) { unnamed_residue_ |= residue; }
  void note_unnamed_runs() { note_residue(unnamed_residue_); }
  Residue unnamed_residue() const { return unnamed_residue_; }
  // A batch that is not answered yet changes which statements exist: what uses their names has to wait, since nobody
  // knows them before.
  bool has_unsettled_statements() const { return earlier_changes_ > 0; }
  // The same for the unnamed statement, unless this batch has made it anew.
  bool has_unsettled_unnamed() const { return earlier_changes_ > 0 && !unnamed_is_of_batch_; }
  void note_may_forget_names(Expected* by);
  // After a COPY that failed with a Sync behind it, until it is known whether the Sync was taken for data: nobody can
  // say which messages of the extended protocol are skipped.
  bool is_undecided() const { return extra_ready_ > 0; }
  bool skips_until_sync() const { return skips_until_sync_; }
  void forget_unnamed_but_of(const ClientSession& client);
  bool is_mid_answer() const { return body_left_ > 0; }
  // What was sent so far ends by itself with a ReadyForQuery, so the client need not be there for it.
  bool can_finish_alone() const;

  // --- what it is
  const std::string& host() const { return host_; }  // as the entry has it
  const SocketAddress& address() const { return address_; }
  std::uint32_t backend_pid() const { return backend_pid_; }
  const std::vector<std::byte>& cancel_key() const { return cancel_key_; }  // pid and secret as they came
  const ParameterSetPtr& parameters() const { return parameters_; }
  std::size_t prepared_count() const { return statements_.size(); }
  std::string log_name() const;
  // Nothing outstanding, not in a transaction, nothing half sent: fit for another client.
  bool is_clean() const;
  bool is_setting_parameters() const {
    return step_ == Step::SetParameters || step_ == Step::ReadDefaults || step_ == Step::ReadSettings;
  }
  // Has been used since its login.
  bool has_served() const { return has_served_; }
  bool has_outstanding() const { return is_busy_; }
  bool owes_answers() const { return !replies_.empty(); }
  std::size_t outstanding_count() const { return replies_.size(); }
  char transaction_status() const { return status_; }

  // Cancels on their way to this server; it is not given to anybody else before they have ended.
  void cancel_started() { ++cancels_; }
  void cancel_ended();
  int cancels() const { return cancels_; }

  std::int64_t connect_time = 0;  // wall clock, for SHOW
  std::int64_t request_time = 0;  // wall clock of the last request
  std::int64_t born = 0;          // monotonic, as the rest
  std::int64_t idle_since = 0;
  std::int64_t query_started = 0;  // 0: no request running
  std::int64_t xact_started = 0;   // 0: not in a transaction
  std::int64_t last_answer = 0;

  // Timeouts of this connection; its worker.
  void check_timeouts(std::int64_t now);
  // Why it cannot be given to another client; null: it can.
  const char* reason_to_close(std::int64_t now) const;

  // --- callbacks
  void on_stream_event() override;
  void on_send_failed() override;
  void resume() override;

  void pump();  // reads and handles what has come

 private:
  friend class Handover;
  enum class LoginStep : std::uint8_t { Resolving, Connecting, SslAnswer, SslHandshake, Messages };
  // A query of our own.
  enum class Step : std::uint8_t {
    None,
    ReadDefaults,  // of what is not reported
    SetParameters,
    Greeting,
    ReadSettings,  // what the client has left them at
    ConnectQuery,
    CheckQuery,
    ResetQuery,
    ResetState,  // what the client has left, where there is no reset query
    ConnectQueryAgain,
    DiscardAll,
    RepeatConnectQuery,
    UserLookup
  };

  // login
  void connect_to(const SocketAddress& address);
  void connected();
  void log_connected();
  void read_ssl_answer();
  void start_tls();
  void continue_handshake();
  void send_startup();
  bool may_ask_for_older() const;
  bool refuses_protocol(Bytes error) const;
  void ask_for_old_protocol();
  void startup_accepted();
  bool handle_login_message(char type, Bytes body);
  bool handle_auth_request(Bytes body);
  void login_message_refused(Bytes body);
  void login_complete();
  void ask_connect_query();
  void login_is_over();
  bool take_greeting(Bytes body);
  void greeting_answered();
  void greeting_failed();
  void could_not_connect(const std::string& reason);
  ServerCredentials credentials();
  std::shared_ptr<const Welcome> make_welcome() const;

  void check_idle(std::int64_t now);
  void check_active(std::int64_t now);
  void read_while_possible();
  void connection_lost();

  // relay
  std::size_t consume(Bytes in);
  std::size_t consume_login(Bytes in);
  std::size_t consume_messages(Bytes in);
  bool handle_message(char type, std::uint32_t body_size, Bytes in, std::size_t& used);
  // Lets a message through as it comes: what is here now, the rest when it arrives.
  bool stream_out(Bytes in, std::size_t total, bool to_client, std::size_t& used) {
    used = std::min(total, in.size());
    if (to_client && client_ != nullptr) send_to_client(in.first(used));
    body_left_ = total - used;
    body_to_client_ = to_client;
    return true;
  }
  // The rest of a message that began earlier, if not `begins`.
  void send_to_client(Bytes bytes, bool begins = true);
  void send_own(const ByteBuffer& message);
  bool client_is_blocked() const;
  PoolCounters& counters() { return pool.counters[static_cast<std::size_t>(worker_index())]; }
  int worker_index() const;
  bool handle_special(char type, Bytes in, std::size_t total, std::size_t& used);
  void lookup_step_finished(Step step);
  bool handle_lookup_answer(char type, Bytes in, std::size_t total, std::size_t& used);
  bool handle_copy_both(Bytes in, std::size_t total, std::size_t& used);
  bool handle_copy_in(Bytes in, std::size_t total, std::size_t& used);
  void completed();
  void pop_reply();
  void tell_first_tag(Bytes message);
  void forget_statements();
  void note_tag(std::string_view tag);
  bool handle_error(Bytes in, std::size_t total, std::size_t& used);
  bool handle_command_complete(Bytes in, std::size_t total, std::size_t& used);
  bool handle_end_without_tag(Bytes in, std::size_t total, std::size_t& used);
  BatchWatch* watch() const;
  bool handle_parameter_status(Bytes in, std::size_t total, std::size_t& used);
  bool handle_ready(Bytes in, std::size_t total, std::size_t& used);
  bool unexpected(char type);
  void after_ready(char status);
  void send_probe();
  void undo_from(std::size_t first, std::size_t end);
  void undo(StatementUndo& undo);
  void drop_skipped_syncs(bool after_error);
  bool has_undecided_requests();
  void after_error();
  void end_stale_batch();
  void tell_error(Bytes message);
  void send_error(Bytes message);
  void log_statement_fault(const char* fault, std::string_view error);
  const char* statement_fault(std::string_view error);
  std::string with_own_name(std::string_view error);
  Fitness tell_form_of(const StatementPtr& statement);
  void ask_for_rows(const PreparedStatement& statement);
  // Of the answers to Describe. Parameter types are for plugins, which read the values of a Bind.
  bool is_noted(char type) const;
  void note_description(const Expected& answered, char type, Bytes body);
  void note_parameter_types(std::uint64_t statement, Bytes body);
  void note_rows(const Expected& answered, RowsMark rows);
  bool is_about_changed_rows(std::string_view error);
  void forget_changed_statement(std::uint64_t number);
  void step_finished();
  void answer_silent_heads();
  void start_step(Step step, const std::string& sql);
  void settings_step_finished(Step step);
  bool handle_settings_answer(Bytes in, std::size_t total, std::size_t& used);
  void read_settings(Step step, bool with_defaults);
  void defaults_read();
  void parameters_were_set();
  void settings_were_read();
  void settings_were_reset(bool to_defaults);
  bool has_connect_query() const;
  void note_parameter(std::string_view name, std::string_view value);
  std::string transport_text() const;

  std::atomic<ServerState> state_{ServerState::Login};
  int generation_;
  bool is_dedicated_ = false;
  Worker* worker_;
  Stream stream_;
  ClientSession* client_ = nullptr;
  AnswerSink* sink_ = nullptr;  // only with a client

  // Input that is not a whole message yet, and how much of a message that streams is still to come.
  Input input_;
  std::size_t body_left_ = 0;
  bool body_to_client_ = false;

  // Accounting
  ReplyQueue replies_;
  char status_ = 'I';              // of the last ReadyForQuery
  bool is_busy_ = false;           // something was sent after the last ReadyForQuery that left nothing open
  bool skips_until_sync_ = false;  // the server ignores what comes, up to a Sync
  bool copy_in_ = false;
  bool copies_both_ways_ = false;             // replication streams
  Residue residue_ = residue::kNone;          // of the client's requests since it was given the connection
  Residue unnamed_residue_ = residue::kNone;  // of running the unnamed statement
  bool is_pinned_ = false;
  bool has_changed_tables_ = false;
  std::int64_t looked_twice_at_ = 0;  // idle_since of the idleness in which the socket was looked at once more
  int extra_ready_ = 0;               // ReadyForQuery that may come or not, after a failed COPY: not reused meanwhile
  bool front_has_answer_ = false;     // a message for the front of replies_ has come
  std::uint64_t unnamed_owner_ = 0;   // if all that was sent succeeds
  bool unnamed_is_of_batch_ = false;  // the batch being sent makes or closes it
  std::size_t changes_ = 0;           // entries of replies_ that change statements
  std::string described_parameters_;  // of the Describe that is answered now, for its form
  int rows_asked_ = 0;                // entries of replies_ that ask for rows
  std::size_t earlier_changes_ = 0;   // those of them in batches that have been sent to their end
  bool step_failed_ = false;
  enum class Due : std::uint8_t { None, GiveBack, Release };
  Due due_ = Due::None;  // when what was read has been looked at
  bool is_reading_ = false;
  bool has_served_ = false;
  bool has_served_clients_ = false;  // other than logins, since the last DISCARD ALL of ours
  Step step_ = Step::None;
  Error step_error_;
  ServerStatements statements_;

  // Login
  LoginStep login_step_ = LoginStep::Resolving;
  std::uint32_t asked_version_ = 0;  // until the server has answered the start-up packet
  bool asks_for_old_protocol_ = false;
  static constexpr std::string_view kNoGreeting = "no answer to the greeting";
  static constexpr std::string_view kBadGreeting =
      "the greeting is answered by something else than one row of two texts";
  std::string greeting_fault_;
  TableMap table_map_;
  std::unique_ptr<ServerAuth> auth_;
  DnsTicket dns_;
  std::string host_;
  SocketAddress address_;
  std::unique_ptr<std::vector<std::pair<std::string, std::string>>> reported_;  // ParameterStatus of the login

  std::uint32_t backend_pid_ = 0;
  std::vector<std::byte> cancel_key_;
  ParameterSetPtr parameters_;  // as they are
  ParameterSetPtr defaults_;    // as they were after login: what a client that asks for nothing gets
  ParameterSetPtr agrees_with_;
  std::vector<bool> is_reported_;  // by tracked name: the server tells of changes
  bool knows_defaults_ = false;    // of the others
  int set_attempts_ = 0;
  std::vector<std::vector<std::optional<std::string>>> rows_;  // of the step
  int cancels_ = 0;
};

}  // namespace lokadb
