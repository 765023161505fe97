// One client: start-up and login, then its stream of requests to the servers it is lent.
//
// Sources: client_session.cc (life), client_login.cc (start-up and login), client_lookup.cc (auth_query),
// client_relay.cc (requests), client_replication.cc, client_timeouts.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/client_auth.h"
#include "net/address.h"
#include "net/input.h"
#include "net/stream.h"
#include "pool/backend_call.h"
#include "pool/cancel_key.h"
#include "pool/database.h"
#include "pool/parameters.h"
#include "pool/prepare_commands.h"
#include "pool/prepared.h"
#include "pool/server_connection.h"
#include "pool/states.h"
#include "pool/transaction_scan.h"
#include "proto/message.h"
#include "proto/startup.h"

namespace lokadb {

class Pooler;
class UserLookup;
class Worker;
struct OwnedTag;

// A server connection that a session is using.
struct Leg {
  ServerConnection* server = nullptr;
};

// What a replication connection asks for: a server connection of its own, made as it says.
struct ReplicationWish {
  ReplicationMode mode = ReplicationMode::None;
  std::string options;  // as they came; empty: none
};

// Where the client's stream stands, in bytes since login: a batch is a Query, or everything up to Sync or Flush.
// Marks only; nothing is copied.
struct BatchMarks {
  std::uint64_t position = 0;  // of the next byte to be handled
  std::uint64_t start = 0;     // of the batch that this byte belongs to
};

// What became of the next bytes of a client's stream.
enum class Outcome : std::uint8_t {
  Done,      // handled; go on
  NeedMore,  // not enough bytes yet
  Wait,      // cannot be handled now (no server, or it is being prepared)
  Closed,    // the session has ended
};

class ClientSession final : public StreamOwner, public Buriable, public ListHook<OwnedTag>, public ListHook<WaitTag> {
 public:
  ClientSession(Pooler& pooler, Worker& worker, int fd, const SocketAddress& peer);
  ~ClientSession() override;

  Pooler& pooler;
  Worker& worker;
  const std::uint64_t id;
  std::uint64_t unnamed_server = 0;  // id of the server that has its newest unnamed statement; 0: none
  Stream& stream() { return stream_; }
  ClientState state() const { return state_; }
  // In the queue of its pool for a server.
  bool waits_for_server() const { return state_ == ClientState::Waiting || state_ == ClientState::UserWanted; }
  // Its login has or wants a server, which is not the client's own: of the pool of auth_user.
  bool is_looked_up() const { return state_ == ClientState::UserWanted || state_ == ClientState::UserAsked; }
  bool set_state(ClientEvent event);
  Leg& leg() { return leg_; }

  // --- life (client_session.cc)
  void start();
  // Sends the error (if `tell`) and closes; what was written before goes out first, as far as the peer takes it.
  void close(const Error& error, bool tell = true);
  void close_silently(const std::string& reason);
  // From the pool: a server, or news, for a session that waits. Its worker.
  void server_given(ServerConnection& server);
  void parameters_set(ServerConnection& by);  // to this session's
  // No server can be had: the login there failed, or a limit of time has passed.
  void server_refused(const Error& error);
  void settings_read();               // of the server that is to be given back
  void server_is_ready(char status);  // ReadyForQuery has been passed on
  void statements_are_settled();      // what waits for them may go on
  void server_lost(const Error& error);
  void welcome_arrived();
  // A connection for its replication: being opened, and logged in (client_replication.cc).
  void dedicated_opened(ServerConnection& server) { leg_.server = &server; }
  void dedicated_ready();
  // What auth_query asks for this session (in state UserAsked), and that all of its answer is there.
  UserLookup& lookup();
  void lookup_answered();
  // What plugins know has been asked anew, for a batch of this session.
  void feeds_are_fresh();
  // Its batches and the plugins; null without plugins.
  class Routing* routing() {
    return routing_.get();
  }
  // The pool it asks for a server: its own, unless a batch is run elsewhere.
  Pool* wanted_pool() { return wanted_pool_ != nullptr ? wanted_pool_ : pool_; }
  // Messages from other threads under way to this session [pool lock]; while there are any, the object lives.
  int in_flight = 0;
  // One of them has arrived: true if the session is still there, else it has been buried now.
  bool arrived();

  // --- console
  // Sends an answer of the console; is_done: the next message may be read.
  void console_answered(const ByteBuffer& out, bool is_done);
  bool console_is_waiting = false;
  bool console_was_used = false;
  bool is_console_admin() const { return is_admin_; }
  bool console_by_same_uid = false;

  // --- what it is
  Pool* pool() { return pool_; }
  Database* database() { return database_; }
  User* user() { return user_; }
  const ReplicationWish* replication() const { return replication_.get(); }  // null: an ordinary client
  // How it uses servers.
  PoolMode mode() const { return replication_ ? PoolMode::Session : pool_->settings.mode; }
  const SocketAddress& peer() const { return peer_; }
  int unix_peer_pid() const { return unix_pid_; }
  const CancelKey& cancel_key() const { return cancel_key_; }
  // The first half of the key, which drivers show as a process id.
  std::uint32_t number() const { return cancel_key_.number(); }
  // Ends as a backend does that is terminated; a statement that runs is cancelled first.
  void terminate();
  const ParameterSetPtr& parameters() const { return parameters_; }
  void set_parameters(ParameterSetPtr set) { parameters_ = std::move(set); }
  const ParameterSetPtr& startup_parameters() const { return startup_parameters_; }
  // News of a setting, between two messages for the client.
  void tell_parameter(std::string_view name, std::string_view value);
  ClientStatements& statements() { return statements_; }
  // Wants to know what becomes of its statements; null: nobody does.
  class BatchWatch* watch() const {
    return watch_;
  }
  PoolCounters& counters();
  std::string log_name() const;
  std::string peer_host() const;  // as logs and SHOW print it
  int peer_port() const;
  bool is_linked() const { return leg_.server != nullptr; }
  // A message of it is half forwarded.
  bool is_mid_message() const { return body_left_ > 0 && !body_is_dropped_; }
  bool has_tls() const { return stream_.ssl() != nullptr; }

  std::int64_t connect_time = 0;  // wall clock, for SHOW
  std::int64_t request_time = 0;
  std::int64_t wait_started = 0;  // monotonic; 0: does not wait
  std::int64_t last_packet = 0;   // monotonic
  std::int64_t born = 0;
  bool wait_was_notified = false;

  // Timeouts of this session; its worker.
  void check_timeouts(std::int64_t now);

  // --- callbacks
  void on_stream_event() override;
  void on_send_failed() override;
  void resume() override;

  void pump();                // reads and handles what has come
  void peer_can_take_more();  // the server's backlog has gone out

 private:
  friend class ClientLogin;
  friend class Handover;
  friend class Routing;
  friend class RoutedBatch;
  friend class CloudBatch;
  bool login_is_in_handshake() const;
  std::int64_t query_wait_limit() const;
  void drop_login();
  void look_for_end();
  void log_closing(const std::string& reason) const;
  void end(bool has_last_words);
  void enter(ClientState next);

  std::size_t consume(Bytes in);
  Outcome consume_one(Bytes in, std::size_t& used);
  bool may_read() const;
  bool answer_is_due() const;
  void input_over(ReadStatus how);
  // The client is going: its server finishes what was asked, or is closed; then the session closes.
  void leave(const std::string& reason);
  void probe();
  void look_after_leaving();
  void release_server();
  void begin_routing();
  void message_forwarded();
  void forget_lookup();
  void forget_counts();
  void forget_number();

  // Requests (client_relay.cc)
  Outcome handle_request(MessageHead head, Bytes in, std::size_t& used);
  Outcome with_server();
  Outcome forward(Request request, MessageHead head, Bytes in, std::size_t& used);
  Outcome pass_on(MessageHead head, Bytes in, std::size_t& used);
  Outcome with_settled_statements();
  Outcome skip(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_copy_data(MessageHead head, Bytes in, std::size_t& used);
  bool shares_servers() const;
  void note_text(Bytes text, bool is_whole, bool is_unnamed_parse);
  void note_piece(Bytes piece);
  void note_function_call(Bytes in);
  Outcome refuse_several_transactions();
  bool deallocated_here(std::string_view sql);
  std::optional<Outcome> handle_statement_command(std::string_view sql);
  bool signal_by_number(bool terminates, std::uint32_t number);
  bool called_here(std::string_view sql);
  bool parse_backend_call(Bytes text);
  StatementPtr intern_backend_call(const BackendCall& call, Bytes text);
  Outcome bind_backend_call(const StatementPtr& statement, MessageHead head, Bytes in, std::size_t& used);
  Outcome prepare_by_sql(const NamedStatement& made, std::string_view sql);
  Outcome execute_by_sql(const NamedStatement& run, std::string_view sql);
  void send_query(std::string_view sql, const NamedStatement& named, std::string_view name);
  bool parse_deallocate(std::string_view sql);
  std::optional<Outcome> parse_execute(MessageHead head, Bytes text);
  Outcome handle_query(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_parse(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_bind(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_describe(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_close_message(MessageHead head, Bytes in, std::size_t& used);
  Outcome handle_console(MessageHead head, Bytes in, std::size_t& used);
  bool rewrites_statements() const;
  void send_renamed(MessageHead head, std::string_view before, std::string_view name, std::size_t replaced);
  Outcome refuse(const Error& error);
  void batch_ended(std::size_t used) { marks_.start = marks_.position + used + body_left_; }

  ClientState state_ = ClientState::Startup;
  Stream stream_;
  SocketAddress peer_;
  int unix_pid_ = 0;

  Leg leg_;
  Pool* pool_ = nullptr;
  Pool* wanted_pool_ = nullptr;
  Database* database_ = nullptr;
  User* user_ = nullptr;
  ParameterSetPtr parameters_;
  ParameterSetPtr startup_parameters_;  // what it asked for at its start
  ClientStatements statements_;
  CancelKey cancel_key_{};
  bool takes_long_keys_ = false;  // protocol 3.2
  BatchMarks marks_;

  Input input_;                // read, not handled yet
  std::size_t body_left_ = 0;  // of a message that streams
  bool body_is_dropped_ = false;
  bool streams_text_ = false;               // the message that streams is SQL
  bool streams_unnamed_ = false;            // of the unnamed statement
  std::array<char, kResidueOverlap> tail_;  // the end of what has streamed, where a word may be cut
  std::size_t tail_size_ = 0;
  std::unique_ptr<TransactionScan> scan_;  // of the Query that streams, or is about to
  std::uint64_t undescribed_ = 0;  // the statement of the unnamed portal, whose rows the client was not told of yet
  bool is_stalled_ = false;        // the next message waits for answers to earlier ones
  std::int64_t left_at_ = 0;
  bool left_politely_ = false;  // by Terminate: it reads no answers any more
  bool is_counted_ = false;     // in the counts of its database and user
  bool is_in_lookup_ = false;   // in the count of pool_, which is auth_user's
  bool is_admin_ = false;
  bool is_condemned_ = false;  // to be closed when its statement has ended
  bool nothing_received_ = true;

  std::unique_ptr<ReplicationWish> replication_;
  std::unique_ptr<class ClientLogin> login_;
  std::unique_ptr<class Routing> routing_;  // null without plugins
  class BatchWatch* watch_ = nullptr;       // its part
  // Parameters of the start-up packet that plugins took, names in lower case.
  std::vector<std::pair<std::string, std::string>> taken_parameters_;
};

}  // namespace lokadb
