// A server's answers: each is matched with what the server owes, and goes to the client, or to nobody.
//
// Anything that is not owed closes the connection. Source of the rules: PostgreSQL manual, "Message Flow".
#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/text.h"
#include "pool/batch_watch.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/routing.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxTag = 256;              // a CommandComplete longer than this is not looked into
constexpr std::size_t kMaxParameter = 1 << 20;    // of a ParameterStatus
constexpr std::size_t kMaxDescription = 1 << 20;  // of rows; longer ones are not compared
// Whether rows of statements may be others after it. Not CREATE TABLE, which some do all the time.
bool changes_tables(std::string_view tag) {
  return tag.starts_with("ALTER ") || tag.starts_with("DROP ") || tag == "CREATE VIEW" || tag == "CREATE FUNCTION";
}

constexpr std::uint16_t bit_of(Request r) { return static_cast<std::uint16_t>(1u << static_cast<unsigned>(r)); }

// Which requests an answer may belong to, and which it ends; sets of bit_of(). Both empty: not the answer to one
// request (handle_special).
struct AnswerRule {
  std::uint16_t within = 0;
  std::uint16_t completes = 0;
  bool needs_care = false;  // more is to be done than to pass it on
};

// Manual, "Message Formats" and "Message Flow".
constexpr std::array<AnswerRule, 256> make_answer_rules() {
  constexpr std::uint16_t query = bit_of(Request::Query), execute = bit_of(Request::Execute);
  std::array<AnswerRule, 256> rules{};
  rules['D'] = {query | execute, 0};                // DataRow
  rules['d'] = {query | execute, 0};                // CopyData
  rules['c'] = {query | execute, 0};                // CopyDone
  rules['H'] = {query | execute, 0};                // CopyOutResponse
  rules['W'] = {query, 0, true};                    // CopyBothResponse
  rules['G'] = {query | execute, 0, true};          // CopyInResponse
  rules['C'] = {query, execute, true};              // CommandComplete
  rules['I'] = {query, execute, true};              // EmptyQueryResponse
  rules['s'] = {0, execute, true};                  // PortalSuspended
  rules['T'] = {query, bit_of(Request::Describe)};  // RowDescription
  rules['n'] = {0, bit_of(Request::Describe)};      // NoData
  rules['t'] = {bit_of(Request::Describe), 0};      // ParameterDescription
  rules['1'] = {0, bit_of(Request::Parse)};         // ParseComplete
  rules['2'] = {0, bit_of(Request::Bind)};          // BindComplete
  rules['3'] = {0, bit_of(Request::Close)};         // CloseComplete
  rules['V'] = {bit_of(Request::FunctionCall), 0};  // FunctionCallResponse
  return rules;
}
constexpr std::array<AnswerRule, 256> kAnswerRules = make_answer_rules();
}  // namespace

std::size_t ServerConnection::consume(Bytes in) {
  if (state() == ServerState::Login) {
    std::size_t used = consume_login(in);
    if (state() == ServerState::Closed || state() == ServerState::Login) return used;
    return used + consume(in.subspan(used));
  }
  if (client_ != nullptr) counters().bytes_sent.add(in.size());
  return consume_messages(in);
}

std::size_t ServerConnection::consume_messages(Bytes in) {
  std::size_t at = 0;
  while (at < in.size()) {
    Bytes rest = in.subspan(at);
    if (body_left_ > 0) {
      std::size_t n = std::min(body_left_, rest.size());
      if (body_to_client_ && client_ != nullptr) send_to_client(rest.first(n), false);
      if (state() == ServerState::Closed) return in.size();
      body_left_ -= n;
      at += n;
      if (body_left_ == 0) skip_silent_heads();
      continue;
    }
    auto head = peek_head(rest);
    if (!head) break;
    if (head->body == kBadLength) {
      close("bad pkt header");
      return in.size();
    }
    std::size_t used = 0;
    bool handled = handle_message(head->type, head->body, rest, used);
    if (state() == ServerState::Closed) return in.size();
    if (!handled) break;
    at += used;
  }
  return at;
}

void ServerConnection::send_to_client(Bytes bytes, bool begins) {
  if (sink_ != nullptr) return sink_->on_answer(bytes, begins);
  client_->stream().send(bytes);
}

bool ServerConnection::client_is_blocked() const {
  if (client_ == nullptr) return false;
  return sink_ != nullptr ? sink_->is_blocked() : client_->stream().is_blocked();
}

bool ServerConnection::unexpected(char type) {
  log_line(LogLevel::Error, "%s unexpected message '%c' (0x%02x) from server", log_name().c_str(),
           type >= ' ' && type < 127 ? type : '?', static_cast<unsigned char>(type));
  close(state() == ServerState::Idle ? "idle server got dirty" : "unexpected message from server");
  return false;
}

bool ServerConnection::handle_message(char type, std::uint32_t body, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + body;
  skip_silent_heads();
  AnswerRule rule = kAnswerRules[static_cast<unsigned char>(type)];
  if (rule.within == 0 && rule.completes == 0) return handle_special(type, in, total, used);
  if (replies_.empty()) return unexpected(type);
  Expected& owed = replies_.front();
  unsigned bit = bit_of(owed.request);
  if (((rule.within | rule.completes) & bit) == 0) return unexpected(type);
  front_has_answer_ = true;
  if (step_ == Step::UserLookup) {
    if (!handle_lookup_answer(type, in, total, used)) return false;
    if ((rule.completes & bit) != 0) completed();
    return true;
  }
  if (step_ == Step::Greeting && type == 'D') {
    if (in.size() < total && total <= kMaxParameter) return false;
    if (in.size() < total || !take_greeting(in.subspan(kHeaderSize, total - kHeaderSize))) {
      greeting_failed();
      return false;
    }
  }
  if (type == 'D' && (step_ == Step::ReadDefaults || step_ == Step::ReadSettings))
    return handle_settings_answer(in, total, used);
  if (owed.tells_form || (owed.request == Request::Describe && owed.statement != 0 && is_noted(type))) {
    if (in.size() < total && total <= kMaxDescription) return false;
    note_description(owed, type, in.size() >= total ? in.subspan(kHeaderSize, total - kHeaderSize) : Bytes());
  }
  if (rule.needs_care) {
    if (type == 'C') return handle_command_complete(in, total, used);
    if (type == 'I' || type == 's') return handle_end_without_tag(in, total, used);
    return type == 'W' ? handle_copy_both(in, total, used) : handle_copy_in(in, total, used);
  }
  if (sink_ != nullptr && in.size() < total &&
      total <= (type == 'D' ? AnswerSink::kWholeRow : AnswerSink::kWholeMessage))
    return false;
  if (rule.completes == 0) total = run_length(in, kBadLength - 1);
  stream_out(in, total, owed.for_client, used);
  if ((rule.completes & bit) != 0) completed();
  return true;
}

// What is not the answer to one request, or more than that.
bool ServerConnection::handle_special(char type, Bytes in, std::size_t total, std::size_t& used) {
  switch (type) {
    case 'Z':
      return handle_ready(in, total, used);
    case 'E':
      return handle_error(in, total, used);
    // These come at any time and answer nothing.
    case 'S':
      return handle_parameter_status(in, total, used);
    case 'N':
      return stream_out(in, total, replies_.empty() || replies_.front().for_client, used);
    case 'A':
      return stream_out(in, total, client_ != nullptr && sink_ == nullptr && !client_->is_looked_up(), used);
    default:
      return unexpected(type);
  }
}

// The request at the front has been answered in full.
void ServerConnection::completed() {
  pop_reply();
  // Answers given here follow at once, unless the message before them is still on its way.
  if (body_left_ == 0) skip_silent_heads();
}

// START_REPLICATION: data in both directions until both sides have had enough.
bool ServerConnection::handle_copy_both(Bytes in, std::size_t total, std::size_t& used) {
  copies_both_ways_ = true;
  return stream_out(in, total, replies_.front().for_client, used);
}

bool ServerConnection::handle_copy_in(Bytes in, std::size_t total, std::size_t& used) {
  copy_in_ = true;
  if (step_ == Step::Greeting) {
    greeting_fault_ = kBadGreeting;
    greeting_failed();
    return false;
  }
  if (client_ != nullptr && client_->state() == ClientState::Leaving) {
    close("client disconnect during COPY");  // nobody will send the data
    return false;
  }
  return stream_out(in, total, replies_.front().for_client, used);
}

// Whoever wants to know what becomes of the client's own statements that run here; mostly null.
BatchWatch* ServerConnection::watch() const {
  return client_ != nullptr && sink_ == nullptr && step_ == Step::None ? client_->watch() : nullptr;
}

// Of an empty statement, or one whose portal has more rows.
bool ServerConnection::handle_end_without_tag(Bytes in, std::size_t total, std::size_t& used) {
  Request owed = replies_.front().request;
  if (watch() != nullptr && replies_.front().for_client) watch()->completed({});
  stream_out(in, total, replies_.front().for_client, used);
  if (owed == Request::Execute) completed();
  return true;
}

bool ServerConnection::handle_command_complete(Bytes in, std::size_t total, std::size_t& used) {
  Request owed = replies_.front().request;
  bool is_one_of_two = replies_.front().hides_first_tag && client_ != nullptr;
  if (total > kMaxTag && watch() != nullptr) watch()->completed({});
  if (total <= kMaxTag) {
    if (in.size() < total) return false;
    MessageReader reader(in.subspan(kHeaderSize, total - kHeaderSize));
    std::string_view tag = reader.cstring();
    bool is_first_of_two = is_one_of_two && !client_->routing()->has_kept_tag();
    if (watch() != nullptr && replies_.front().for_client && !is_first_of_two) watch()->completed(tag);
    if (tag == "DEALLOCATE ALL" || tag == "DISCARD ALL") {
      forget_statements();
      // With a connect_query that was not run again, the settings are not those that the session began with.
      bool is_full = !has_connect_query() || step_ == Step::ResetState || step_ == Step::DiscardAll;
      if (tag == "DISCARD ALL") settings_were_reset(is_full);
    }
    if (step_ == Step::None) note_tag(tag);
    if (changes_tables(tag)) has_changed_tables_ = true;
  }
  if (is_one_of_two && in.size() >= total) {
    used = total;
    tell_first_tag(in.first(total));
  } else {
    stream_out(in, total, replies_.front().for_client, used);
  }
  if (copy_in_) drop_skipped_syncs(false);
  if (owed != Request::Execute) return true;
  bool is_last_step = replies_.front().is_last_step;
  completed();
  if (is_last_step && client_ != nullptr) client_->routing()->steps_passed();
  return true;
}

// That of the first of two statements is kept until the second has ended.
void ServerConnection::tell_first_tag(Bytes message) {
  Routing& routing = *client_->routing();
  if (!routing.has_kept_tag()) return routing.keep_tag(message);
  ByteBuffer out;
  out.append(routing.take_tag());
  send_own(out);
}

// The server has dropped all statements; those that were sent behind the command are still to come.
void ServerConnection::forget_statements() {
  statements_.clear();
  bool is_clients = client_ != nullptr && step_ == Step::None;
  if (is_clients) client_->statements().clear();
  for (std::size_t i = 1; i < replies_.size(); ++i) {
    const auto& change = replies_.at(i).undo;
    if (change == nullptr) continue;
    if (change->server_added) statements_.add(change->statement);
    if (change->server_removed) statements_.remove(*change->statement);
    if (is_clients && change->client_added) client_->statements().set(change->client_name, change->statement);
    if (is_clients && change->client_removed) client_->statements().remove(change->client_name);
  }
}

// The COPY that ran has ended: Syncs that were sent while it took data were part of its data for the server.
void ServerConnection::drop_skipped_syncs(bool after_error) {
  copy_in_ = false;
  for (std::size_t i = 1; i < replies_.size();) {
    Request r = replies_.at(i).request;
    if (r == Request::CopyEnd) {
      replies_.remove(i);
      return;
    }
    if (r != Request::Sync) {
      ++i;
      continue;
    }
    replies_.remove(i);
    // Whether the server had read this Sync before it failed cannot be known, so neither can how many ReadyForQuery
    // will come. send_probe() finds out.
    if (after_error) ++extra_ready_;
  }
}

// A message of our own making, for the client.
void ServerConnection::send_own(const ByteBuffer& message) {
  if (sink_ != nullptr) return sink_->on_answer(message.bytes(), true);
  client_->stream().send_copy(message.bytes());
}

bool ServerConnection::has_undecided_requests() {
  for (std::size_t i = 1; i < replies_.size(); ++i) {
    Request r = replies_.at(i).request;
    if (!ends_with_ready(r) && r != Request::CopyEnd) return true;
  }
  return false;
}

void ServerConnection::after_error() {
  Request failed = replies_.front().request;
  front_has_answer_ = true;
  if (copy_in_) drop_skipped_syncs(true);
  if (is_undecided() && has_undecided_requests()) return close_with(undecided_copy());
  if (ends_with_ready(failed)) {  // ReadyForQuery follows by itself
    if (auto& noted = replies_.front().undo) {
      undo(*noted);
      *noted = {};
    }
    return;
  }
  // Extended protocol: everything up to the next Sync is ignored, simple queries too.
  std::size_t end = 0;
  while (end < replies_.size() && replies_.at(end).request != Request::Sync) ++end;
  skips_until_sync_ = end == replies_.size();
  undo_from(0, end);
  for (; end > 0; --end) pop_reply();
  if (!replies_.empty() && replies_.front().stands_in) replies_.front().for_client = true;
  if (client_ != nullptr && client_->routing() != nullptr) {
    client_->routing()->steps_passed();  // or are skipped
    if (client_->routing()->is_stale()) end_stale_batch();
  }
  // A client that has left will not send the Sync.
  if (skips_until_sync_ && client_ != nullptr && client_->state() == ClientState::Leaving)
    close("client disconnect while server was not ready");
}

// The batch begins anew: nobody is told of its Sync, which may not have been sent yet and then never will be.
void ServerConnection::end_stale_batch() {
  if (replies_.empty()) return send_own_sync();
  replies_.front().for_client = false;
}

bool ServerConnection::handle_parameter_status(Bytes in, std::size_t total, std::size_t& used) {
  if (total > kMaxParameter) {
    close("broken ParameterStatus packet");
    return false;
  }
  if (in.size() < total) return false;
  MessageReader reader(in.subspan(kHeaderSize, total - kHeaderSize));
  std::string_view name = reader.cstring();
  std::string_view value = reader.cstring();
  if (!reader.finished()) {
    close("broken ParameterStatus packet");
    return false;
  }
  bool ours = step_ != Step::None || sink_ != nullptr;
  if (auto index = pooler.tracked.index(name)) {
    bool agreed = client_ != nullptr && agrees_with(client_->parameters());
    parameters_ = with_parameter(parameters_, *index, value);
    agrees_with_ = nullptr;
    if (client_ != nullptr && !ours) {
      client_->set_parameters(with_parameter(client_->parameters(), *index, value));
      if (agreed) agrees_with_ = client_->parameters();
    }
  }
  // Who the session is was changed by SET ROLE or SET SESSION AUTHORIZATION, though perhaps inside a function.
  if (!ours && (name == "session_authorization" || name == "is_superuser")) note_residue(residue::kState);
  // The answers to our own SET are not news to the client, other reports are.
  return stream_out(in, total, !ours, used);
}

bool ServerConnection::handle_ready(Bytes in, std::size_t total, std::size_t& used) {
  if (total != kHeaderSize + 1) {
    close("bad ReadyForQuery packet");
    return false;
  }
  if (in.size() < total) return false;
  bool is_owed = !replies_.empty() && ends_with_ready(replies_.front().request);
  // Queries are never answered by ReadyForQuery alone: it is one of those that may come or not.
  if (is_owed && extra_ready_ > 0 && !front_has_answer_ && replies_.front().request != Request::Sync) is_owed = false;
  if (!is_owed && (extra_ready_ == 0 || client_ == nullptr)) return unexpected('Z');
  char status = static_cast<char>(in[kHeaderSize]);
  if (status != 'I' && status != 'T' && status != 'E') {
    close("bad ReadyForQuery packet");
    return false;
  }
  stream_out(in, total, is_owed ? replies_.front().for_client : true, used);
  if (is_owed) {
    if (copy_in_) drop_skipped_syncs(false);
    if (!replies_.front().for_client && step_ == Step::None) {
      extra_ready_ = 0;  // the probe: all has come
      if (client_ != nullptr) client_->statements_are_settled();
    }
    pop_reply();
    if (extra_ready_ > 0 && replies_.empty()) send_probe();
  } else {
    --extra_ready_;
    skips_until_sync_ = false;
  }
  skip_silent_heads();
  after_ready(status);
  return true;
}

// An empty query: what comes before its answer belongs to what was sent before it, and nothing of it comes after.
void ServerConnection::send_probe() {
  if (client_ == nullptr || client_->is_mid_message()) return;
  static constexpr char kEmptyQuery[] = {'Q', 0, 0, 0, 5, 0};
  if (expect(Request::Query, false) != nullptr) stream_.send(as_bytes({kEmptyQuery, sizeof kEmptyQuery}));
}

void ServerConnection::after_ready(char status) {
  status_ = status;
  if (has_changed_tables_ && status == 'I') {
    has_changed_tables_ = false;
    begin_statement_epoch();
  }
  std::int64_t now = worker_->loop.now();
  last_answer = now;
  if (replies_.empty()) {
    is_busy_ = copies_both_ways_ = false;
    if (client_ != nullptr && step_ == Step::None) {
      PoolCounters& c = counters();
      c.query_time.add(static_cast<std::uint64_t>(std::max<std::int64_t>(now - query_started, 0)));
      if (status == 'I' && xact_started != 0)
        c.xact_time.add(static_cast<std::uint64_t>(std::max<std::int64_t>(now - xact_started, 0)));
    }
    query_started = 0;
  }
  if (status == 'I' && replies_.empty() && step_ == Step::None) xact_started = 0;
  if (step_ != Step::None) {
    if (replies_.empty()) step_finished();
    return;
  }
  if (client_ == nullptr) return;
  if (watch() != nullptr) watch()->ready(status);
  if (sink_ == nullptr) return client_->server_is_ready(status);
  if (replies_.empty()) sink_->on_ready(*this, status);
}

}  // namespace lokadb
