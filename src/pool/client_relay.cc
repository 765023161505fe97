// A client's requests on their way to a server. Only headers are looked at, except for messages that name a prepared
// statement; everything else goes on from the buffer it was read into.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/prepare_commands.h"
#include "pool/sql_lexer.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxNamedParse = 256u << 20;  // held in one piece
constexpr std::size_t kMaxStatements = 65536;       // of one client
constexpr std::size_t kMaxOutstanding = 1u << 20;   // requests of one client that are not answered yet
constexpr std::size_t kMaxDeallocate = 256;         // a longer Query is not looked into
constexpr std::size_t kMaxCommand = 65536;          // the same for PREPARE and EXECUTE
constexpr std::size_t kMaxNames = 65536;            // portal and statement name of one message

// Whole string up to its zero byte at `at` of what is here of a body; nullopt: its end has not come yet.
std::optional<std::string_view> string_at(Bytes in, std::size_t at) {
  if (at >= in.size()) return std::nullopt;
  const void* end = std::memchr(in.data() + at, 0, in.size() - at);
  if (end == nullptr) return std::nullopt;
  std::size_t size = static_cast<std::size_t>(static_cast<const std::byte*>(end) - in.data()) - at;
  return as_text(in.subspan(at, size));
}
// Of SQL, in lower case.
char first_letter(Bytes text) {
  std::string_view sql = without_blanks(as_text(text));
  return sql.empty() ? '\0' : lower(sql.front());
}

// The SQL of a Query, without its zero byte.
std::string_view text_of(Bytes body) { return as_text(body).substr(0, as_text(body).find('\0')); }

// Whether the message's fate depends on whether the server is skipping to a Sync.
bool needs_decision(char type) { return std::string_view("PBDEC").find(type) != std::string_view::npos; }
}  // namespace

Outcome ClientSession::refuse(const Error& error) {
  close(error);
  return Outcome::Closed;
}

Outcome ClientSession::handle_request(MessageHead head, Bytes in, std::size_t& used) {
  if (is_linked()) {
    if (leg_.server->outstanding_count() > kMaxOutstanding)
      return refuse({sqlstate::kProgramLimitExceeded, Severity::Fatal, "too many requests in one pipeline", {}});
    if (leg_.server->is_undecided() && needs_decision(head.type)) {
      if (!leg_.server->skips_until_sync()) return Outcome::Wait;
      return refuse(undecided_copy());
    }
  }
  switch (head.type) {
    case 'Q':
      if (pooler.options().disable_pqexec) return refuse(fatal("PQexec disallowed"));
      return handle_query(head, in, used);
    case 'P':
      return handle_parse(head, in, used);
    case 'B':
      return handle_bind(head, in, used);
    case 'D':
      return handle_describe(head, in, used);
    case 'E':
      return forward(Request::Execute, head, in, used);
    case 'S':
      return forward(Request::Sync, head, in, used);
    case 'C':
      return handle_close_message(head, in, used);
    case 'H':
      if (!is_linked()) return skip(head, in, used);
      leg_.server->skip_silent_heads();
      return pass_on(head, in, used);
    case 'd':
      return handle_copy_data(head, in, used);
    case 'c':
    case 'f':
      // Late ends of a COPY that has failed long since: nobody waits for them.
      if (!is_linked()) return skip(head, in, used);
      if (leg_.server->has_outstanding()) leg_.server->expect(Request::CopyEnd);
      return pass_on(head, in, used);
    case 'F':
      if (Outcome o = with_server(); o != Outcome::Done) return o;
      if (shares_servers()) note_function_call(in);
      return forward(Request::FunctionCall, head, in, used);
    case 'X':
      left_politely_ = true;
      leave("client close request");
      return Outcome::Closed;
    default:
      log_line(LogLevel::Error, "%s unknown pkt from client: %d/0x%02x", log_name().c_str(),
               static_cast<unsigned char>(head.type), static_cast<unsigned char>(head.type));
      return refuse(fatal("unknown pkt"));
  }
}

Outcome ClientSession::with_server() {
  if (is_linked()) return Outcome::Done;
  request_time = wall_us();
  switch (pooler.acquire(*this)) {
    case Acquired::Linked:
      return Outcome::Done;
    case Acquired::Queued:
      return Outcome::Wait;
    case Acquired::Refused:
      return Outcome::Closed;
  }
  return Outcome::Closed;
}

// For messages that name a statement.
Outcome ClientSession::with_settled_statements() {
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  return leg_.server->has_unsettled_statements() ? Outcome::Wait : Outcome::Done;
}

Outcome ClientSession::forward(Request request, MessageHead head, Bytes in, std::size_t& used) {
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  leg_.server->expect_plain(request);
  Outcome outcome = pass_on(head, in, used);
  if (ends_with_ready(request)) batch_ended(used);
  return outcome;
}

Outcome ClientSession::handle_query(MessageHead head, Bytes in, std::size_t& used) {
  // After an error in a batch the server ignores everything up to Sync, so that nothing in it is to be understood here.
  if (is_linked() && leg_.server->skips_until_sync()) return forward(Request::Query, head, in, used);
  Bytes text = in.subspan(kHeaderSize, std::min<std::size_t>(head.body, in.size() - kHeaderSize));
  char first = first_letter(text);
  if (first == 's' && head.body <= kMaxDeallocate && text.size() == head.body && called_here(text_of(text))) {
    batch_ended(used = kHeaderSize + head.body);
    return Outcome::Done;
  }
  if (!rewrites_statements()) first = '\0';
  if ((first == 'e' || first == 'p') && head.body <= kMaxCommand) {
    if (text.size() < head.body) return Outcome::NeedMore;
    if (auto outcome = handle_statement_command(text_of(text))) {
      if (*outcome == Outcome::Done) batch_ended(used = kHeaderSize + head.body);
      return *outcome;
    }
  }
  bool may_forget = first == 'd';  // DEALLOCATE and DISCARD
  if (may_forget && head.body <= kMaxDeallocate) {
    if (text.size() < head.body) return Outcome::NeedMore;
    if (is_linked() && (leg_.server->has_unsettled_statements() || leg_.server->is_undecided())) return Outcome::Wait;
    if (deallocated_here(text_of(text))) {
      batch_ended(used = kHeaderSize + head.body);
      return Outcome::Done;
    }
  }
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  if (shares_servers()) note_text(text, text.size() == head.body, false);
  if (scan_ && scan_->feed(as_text(text))) return refuse_several_transactions();
  if (text.size() == head.body) scan_.reset();
  if (Outcome o = forward(Request::Query, head, in, used); o != Outcome::Done) return o;
  if (may_forget) leg_.server->note_may_forget_names(leg_.server->last_expected());
  return Outcome::Done;
}

// DEALLOCATE of a statement that was prepared by message. Servers know it under another name and keep it for whoever
// uses the same text next, so that it is answered here; in a failed transaction it is not even looked at.
bool ClientSession::deallocated_here(std::string_view sql) {
  if (is_linked() && leg_.server->transaction_status() == 'E') return false;
  auto name = deallocated_name(sql);
  StatementPtr statement = name ? statements_.find(*name) : nullptr;
  if (!statement) return false;
  statements_.remove(*name);
  ByteBuffer out;
  if (is_linked() && leg_.server->owes_answers()) {
    // Behind answers that are to come: by the server, at its place.
    auto undo = std::make_unique<StatementUndo>();
    undo->client_name = *name;
    undo->statement = std::move(statement);
    undo->client_removed = true;
    leg_.server->prepare_throwaway();
    leg_.server->send_own_sync();
    leg_.server->expect_query(std::move(undo));
    write_query(out, std::string("DEALLOCATE ") + ServerConnection::kThrowaway);
    leg_.server->stream().send_copy(out.bytes());
    return true;
  }
  {
    MessageWriter m(out, 'C');
    m->cstring("DEALLOCATE");
  }
  write_ready_for_query(out, is_linked() ? leg_.server->transaction_status() : 'I');
  stream_.send_copy(out.bytes());
  return true;
}

// The same in the extended protocol: it is answered by the server, at its place in the pipeline, for an empty statement
// made for this. False: it is none, or not known.
bool ClientSession::parse_deallocate(std::string_view sql) {
  auto name = deallocated_name(sql);
  StatementPtr statement = name ? statements_.find(*name) : nullptr;
  if (!statement) return false;
  ServerConnection& server = *leg_.server;
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = *name;
  undo->statement = statement;
  undo->client_removed = true;
  statements_.remove(*name);
  server.prepare_throwaway();
  Expected* expected = server.expect(Request::Parse, true, std::move(undo));
  server.set_unnamed_owner(id, expected);
  server.set_unnamed_residue(residue::kNone);
  ByteBuffer out;
  {
    MessageWriter m(out, 'P');
    m->cstring("");
    m->cstring(std::string("DEALLOCATE ") + ServerConnection::kThrowaway);
    m->u16(0);
  }
  server.stream().send_copy(out.bytes());
  return true;
}

Outcome ClientSession::pass_on(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  used = std::min(total, in.size());
  leg_.server->forward(in.first(used));
  body_left_ = total - used;
  body_is_dropped_ = false;
  return Outcome::Done;
}

Outcome ClientSession::handle_copy_data(MessageHead head, Bytes in, std::size_t& used) {
  if (!is_linked()) return skip(head, in, used);
  std::size_t total = run_length(in, pooler.options().max_packet_size);
  head.body = static_cast<std::uint32_t>(total - kHeaderSize);
  return pass_on(head, in, used);
}

Outcome ClientSession::skip(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  used = std::min(total, in.size());
  body_left_ = total - used;
  body_is_dropped_ = true;
  return Outcome::Done;
}

bool ClientSession::rewrites_statements() const {
  // With plugins in session pooling, too: they have to know what a name stands for.
  return (shares_servers() || routing_ != nullptr) && pooler.options().max_prepared_statements > 0;
}

// Sends what a message of the client becomes when a name in it is replaced: a new head, `before`, the name; the rest of
// the message follows from the client's own bytes. replaced: length of the old name.
void ClientSession::send_renamed(MessageHead head, std::string_view before, std::string_view name,
                                 std::size_t replaced) {
  std::size_t size = kHeaderSize + before.size() + name.size();
  std::byte* out = worker.loop.arena().allocate(size);
  out[0] = static_cast<std::byte>(head.type);
  store_u32(out + 1, static_cast<std::uint32_t>(4 + head.body - replaced + name.size()));
  std::copy_n(as_bytes(before).data(), before.size(), out + kHeaderSize);
  std::copy_n(as_bytes(name).data(), name.size(), out + kHeaderSize + before.size());
  leg_.server->forward({out, size});
}

Outcome ClientSession::handle_parse(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  auto name = string_at(in.first(std::min(total, in.size())), kHeaderSize);
  if (!name && in.size() < total && in.size() < kMaxNames) return Outcome::NeedMore;
  if (!name) return forward(Request::Parse, head, in, used);  // malformed: the server says so
  if (name->empty()) {
    Bytes text = in.subspan(kHeaderSize + 1, std::min<std::size_t>(total, in.size()) - kHeaderSize - 1);
    if (rewrites_statements() && first_letter(text) == 'd' && head.body <= kMaxDeallocate) {
      if (in.size() < total) return Outcome::NeedMore;
      if (Outcome o = with_settled_statements(); o != Outcome::Done) return o;
      used = total;
      if (parse_deallocate(text_of(in.subspan(kHeaderSize + 1, head.body - 1)))) return Outcome::Done;
    }
    if (Outcome o = with_server(); o != Outcome::Done) return o;
    if (rewrites_statements() && first_letter(text) == 'e' && head.body <= kMaxCommand) {
      if (in.size() < total) return Outcome::NeedMore;
      if (auto outcome = parse_execute(head, text)) {
        if (*outcome == Outcome::Done) used = total;
        return *outcome;
      }
    }
    if (in.size() >= total && head.body <= kMaxDeallocate && parse_backend_call(text)) {
      used = total;
      return Outcome::Done;
    }
    leg_.server->set_unnamed_owner(id, leg_.server->expect(Request::Parse));
    leg_.server->set_unnamed_residue(residue::kNone);
    if (shares_servers()) note_text(text, in.size() >= total, true);
    return pass_on(head, in, used);
  }
  if (!rewrites_statements()) {
    if (Outcome o = with_server(); o != Outcome::Done) return o;
    if (shares_servers()) {
      std::size_t begin = kHeaderSize + name->size() + 1;
      note_text(in.subspan(begin, std::min(total, in.size()) - begin), in.size() >= total, false);
      leg_.server->note_residue(residue::kState);  // the statement, under a name that others may use
    }
    return forward(Request::Parse, head, in, used);
  }
  if (total > kMaxNamedParse)
    return refuse({sqlstate::kProgramLimitExceeded, Severity::Fatal, "prepared statement is too large", {}});
  if (in.size() < total) return Outcome::NeedMore;

  Bytes text = in.subspan(kHeaderSize + name->size() + 1, head.body - name->size() - 1);
  MessageReader reader(text);
  reader.cstring();
  reader.take(reader.u16() * std::size_t{4});
  if (!reader.finished()) return forward(Request::Parse, head, in, used);
  if (Outcome o = with_settled_statements(); o != Outcome::Done) return o;

  ServerConnection& server = *leg_.server;
  counters().client_parse_count.add(1);
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = *name;
  used = total;
  if (const StatementPtr& there = statements_.find(*name)) {
    // The server itself shall say that the name is in use, at the right place of the pipeline and with all that an
    // error means for the transaction.
    server.ensure_prepared(there, true);
    undo->statement = there;
    const std::string& taken = there->server_name();
    if (Expected* e = server.expect(Request::Parse, true, std::move(undo))) e->name_is_taken = true;
    send_renamed(head, {}, taken, name->size());
    server.forward(in.subspan(kHeaderSize + name->size(), head.body - name->size()));
    return Outcome::Done;
  }
  if (statements_.size() >= kMaxStatements)
    return refuse({sqlstate::kProgramLimitExceeded, Severity::Fatal, "too many prepared statements", {}});
  auto call = may_be_backend_call(as_text(text)) ? backend_call(text_of(text)) : std::nullopt;
  bool is_call = call && !call->number;
  StatementPtr statement = is_call ? intern_backend_call(*call, text) : intern_statement(text, pooler.tracked);
  undo->statement = statement;
  undo->client_added = true;
  statements_.set(*name, statement);
  if (server.has_prepared(*statement)) {
    server.expect(Request::ParsedHere, true, std::move(undo));
    return Outcome::Done;
  }
  server.note_prepared(statement);
  undo->server_added = true;
  counters().server_parse_count.add(1);
  server.expect(Request::Parse, true, std::move(undo));
  if (is_call) {
    server.send_parse(*statement);
    return Outcome::Done;
  }
  send_renamed(head, {}, statement->server_name(), name->size());
  server.forward(in.subspan(kHeaderSize + name->size(), head.body - name->size()));
  return Outcome::Done;
}

Outcome ClientSession::handle_bind(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  auto portal = string_at(in.first(std::min(total, in.size())), kHeaderSize);
  auto name = portal ? string_at(in.first(std::min(total, in.size())), kHeaderSize + portal->size() + 1) : std::nullopt;
  if (!name && in.size() < total && in.size() < kMaxNames) return Outcome::NeedMore;
  if (!name) return forward(Request::Bind, head, in, used);
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  ServerConnection& server = *leg_.server;
  undescribed_ = 0;
  if (name->empty()) {
    if (server.has_unsettled_unnamed()) return Outcome::Wait;
    server.forget_unnamed_but_of(*this);
    server.note_unnamed_runs();
    if ((server.unnamed_residue() & residue::kCalls) != 0) return bind_backend_call(nullptr, head, in, used);
    return forward(Request::Bind, head, in, used);
  }
  if (!rewrites_statements()) return forward(Request::Bind, head, in, used);
  if (Outcome o = with_settled_statements(); o != Outcome::Done) return o;
  // A name that is not known here is the server's to refuse (or a statement made by SQL PREPARE in this transaction).
  const auto& known = statements_.look_up(*name);
  const StatementPtr& statement = known.statement;
  if (!statement) return forward(Request::Bind, head, in, used);
  auto fitness = server.prepare_for(known);
  if (fitness == ServerConnection::Fitness::Asked) return Outcome::Wait;
  counters().bind_count.add(1);
  server.note_residue(statement->residue());
  if ((statement->residue() & residue::kCalls) != 0) return bind_backend_call(statement, head, in, used);
  std::string_view before = as_text(in.subspan(kHeaderSize, portal->size() + 1));
  if (fitness == ServerConnection::Fitness::Unfit) {
    server.expect_changed_rows(Request::Bind, *statement);
    send_renamed(head, before, ServerConnection::kNoStatement, name->size());
  } else {
    server.expect_use(Request::Bind, *statement);
    send_renamed(head, before, statement->server_name(), name->size());
    if (known.rows == kUnknownRows && portal->empty() && statement->has_settled_rows())
      undescribed_ = statement->number();
  }
  std::size_t names_end = kHeaderSize + portal->size() + 1 + name->size();
  used = std::min(total, in.size());
  server.forward(in.subspan(names_end, used - names_end));
  body_left_ = total - used;
  body_is_dropped_ = false;
  return Outcome::Done;
}

Outcome ClientSession::handle_describe(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  if (total > kMaxNames) return forward(Request::Describe, head, in, used);
  if (in.size() < total) return Outcome::NeedMore;
  auto name = string_at(in.first(total), kHeaderSize + 1);
  if (!name || kHeaderSize + 2 + name->size() != total) return forward(Request::Describe, head, in, used);
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  ServerConnection& server = *leg_.server;
  if (static_cast<char>(in[kHeaderSize]) != 'S') {
    Outcome outcome = forward(Request::Describe, head, in, used);
    // Some remember for the statement what they were told of its portal.
    if (undescribed_ != 0 && name->empty() && !server.skips_until_sync())
      server.last_expected()->statement = std::exchange(undescribed_, 0);
    return outcome;
  }
  if (name->empty()) {
    if (server.has_unsettled_unnamed()) return Outcome::Wait;
    server.forget_unnamed_but_of(*this);
    return forward(Request::Describe, head, in, used);
  }
  if (!rewrites_statements()) return forward(Request::Describe, head, in, used);
  if (Outcome o = with_settled_statements(); o != Outcome::Done) return o;
  const auto& known = statements_.look_up(*name);
  if (!known.statement) return forward(Request::Describe, head, in, used);
  auto fitness = server.prepare_for(known);
  if (fitness == ServerConnection::Fitness::Asked) return Outcome::Wait;
  if (fitness == ServerConnection::Fitness::Unfit) {
    server.expect_changed_rows(Request::Describe, *known.statement);
    send_renamed(head, "S", ServerConnection::kNoStatement, name->size());
  } else {
    server.expect_use(Request::Describe, *known.statement);
    send_renamed(head, "S", known.statement->server_name(), name->size());
  }
  server.forward(in.subspan(total - 1, 1));
  used = total;
  return Outcome::Done;
}

Outcome ClientSession::handle_close_message(MessageHead head, Bytes in, std::size_t& used) {
  std::size_t total = kHeaderSize + head.body;
  if (total > kMaxNames) return forward(Request::Close, head, in, used);
  if (in.size() < total) return Outcome::NeedMore;
  auto name = string_at(in.first(total), kHeaderSize + 1);
  if (!name || kHeaderSize + 2 + name->size() != total) return forward(Request::Close, head, in, used);
  if (Outcome o = with_server(); o != Outcome::Done) return o;
  ServerConnection& server = *leg_.server;
  bool is_ours = static_cast<char>(in[kHeaderSize]) == 'S' && !name->empty() && rewrites_statements();
  if (is_ours && server.has_unsettled_statements()) return Outcome::Wait;
  StatementPtr statement = is_ours ? statements_.find(*name) : nullptr;
  if (!statement) return forward(Request::Close, head, in, used);
  // The server keeps the statement, for whoever uses the same text next; only the client's name goes.
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = *name;
  undo->statement = statement;
  undo->client_removed = true;
  statements_.remove(*name);
  server.expect(Request::ClosedHere, true, std::move(undo));
  used = total;
  return Outcome::Done;
}

// ------------------------------------------------------------------ console

Outcome ClientSession::handle_console(MessageHead head, Bytes in, std::size_t& used) {
  if (console_is_waiting) return Outcome::Wait;
  if (head.type == 'X') {
    close_silently("client close request");
    return Outcome::Closed;
  }
  std::size_t total = kHeaderSize + head.body;
  if (total > kMaxNames) return refuse(fatal("incomplete pkt"));
  if (in.size() < total) return Outcome::NeedMore;
  used = total;
  console_is_waiting = true;
  if (!console_was_used) {
    // As PgBouncer counts, whose sums in SHOW TOTALS contain it: a console connection is one query, however many it
    // has.
    console_was_used = true;
    counters().query_count.add(1);
    counters().xact_count.add(1);
  }
  std::string body(as_text(in.subspan(kHeaderSize, head.body)));
  pooler.run_alone_later([p = &pooler, session_id = id, type = head.type, text = std::move(body)] {
    p->console->message(session_id, type, text);
  });
  return Outcome::Done;
}

void ClientSession::console_answered(const ByteBuffer& out, bool is_done) {
  stream_.send_copy(out.bytes());
  if (!is_done) return;
  console_is_waiting = false;
  worker.loop.resume_later(*this);
}

}  // namespace lokadb
