// Requests on their way to a server: what answers they will get, and which statements the server has.
#include <algorithm>

#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {

constexpr char kParseComplete[] = {'1', 0, 0, 0, 4};
constexpr char kCloseComplete[] = {'3', 0, 0, 0, 4};

void append_parse(ByteBuffer& out, const PreparedStatement& statement) {
  MessageWriter m(out, 'P');
  m->cstring(statement.server_name());
  m->append(statement.body());
}

void append_close(ByteBuffer& out, char kind, std::string_view name) {
  MessageWriter m(out, 'C');
  m->u8(static_cast<std::uint8_t>(kind));
  m->cstring(name);
}

void append_describe(ByteBuffer& out, std::string_view statement) {
  MessageWriter m(out, 'D');
  m->u8('S');
  m->cstring(statement);
}

// SQL PREPARE by messages, so that it has its place among those of a batch.
void append_sql_prepare(ByteBuffer& out, const PreparedStatement& statement, const char* by) {
  append_close(out, 'S', by);
  append_close(out, 'P', by);
  {
    MessageWriter m(out, 'P');
    m->cstring(by);
    m->cstring("PREPARE \"" + statement.server_name() + "\" " + std::string(statement.sql_rest()));
    m->u16(0);
  }
  {
    MessageWriter m(out, 'B');
    m->cstring(by);
    m->cstring(by);
    for (int i = 0; i < 3; ++i) m->u16(0);
  }
  MessageWriter m(out, 'E');
  m->cstring(by);
  m->u32(0);
}

}  // namespace

Expected* ServerConnection::expect(Request request, bool for_client, std::unique_ptr<StatementUndo> undo) {
  // After an error everything up to Sync is ignored by the server, and so never answered.
  if (skips_until_sync_) {
    if (request != Request::Sync) {
      if (undo != nullptr) this->undo(*undo);
      return nullptr;
    }
    skips_until_sync_ = false;
  }
  is_busy_ = true;
  if (for_client && query_started == 0) {
    query_started = worker_->loop.now();
    PoolCounters& c = counters();
    c.query_count.add(1);
    if (xact_started == 0) {
      xact_started = query_started;
      c.xact_count.add(1);
    }
  }
  if (ends_with_ready(request)) unnamed_is_of_batch_ = false;
  bool is_change = undo != nullptr;
  replies_.push(request, for_client, std::move(undo));
  if (is_change) ++changes_;
  if (request == Request::Sync) earlier_changes_ = changes_;
  return &replies_.back();
}

void ServerConnection::note_may_forget_names(Expected* by) {
  if (by == nullptr || by->changes_statements()) return;
  by->forgets_names = true;
  earlier_changes_ = ++changes_;  // a simple query is a batch of its own
}

void ServerConnection::set_unnamed_owner(std::uint64_t client_id, Expected* by) {
  if (by == nullptr) return;  // the server ignores it
  if (unnamed_owner_ != client_id && !by->changes_statements()) ++changes_;
  by->sets_unnamed = true;
  by->takes_unnamed = unnamed_owner_ != client_id;
  by->unnamed_before = unnamed_owner_;
  unnamed_owner_ = client_id;
  unnamed_is_of_batch_ = true;
  bool is_closed = by->request == Request::Close;  // the client's newest may be on another server
  if (!is_closed && client_ != nullptr && client_->id == client_id) client_->unnamed_server = id;
}

void ServerConnection::pop_reply() {
  if (replies_.front().changes_statements()) {
    --changes_;
    // They are answered in order, so it is one of the earlier ones while there are any.
    if (earlier_changes_ > 0 && --earlier_changes_ == 0 && client_ != nullptr) client_->statements_are_settled();
  }
  bool were_rows_asked = replies_.front().asks_for_rows;
  replies_.pop();
  front_has_answer_ = false;
  if (were_rows_asked && --rows_asked_ == 0 && client_ != nullptr) client_->statements_are_settled();
  // The end of a batch up to Flush, which nothing else tells to the batch that waits behind it.
  if (replies_.empty() && client_ != nullptr && client_->routing() != nullptr) client_->statements_are_settled();
}

// Asking costs a round trip, so it is done only where a server does not say by itself that the rows are others than
// they were when it prepared the statement: because it prepares it now, or did so for somebody else.
ServerConnection::Fitness ServerConnection::prepare_for(const ClientStatements::Known& known) {
  if (skips_until_sync_) return Fitness::Fit;
  if (sink_ != nullptr && sink_->wants_forms()) return tell_form_of(known.statement);
  const auto* there = statements_.use(*known.statement);
  bool is_told = known.rows != kUnknownRows && status_ != 'E' && sink_ == nullptr;
  if (there != nullptr && (!is_told || there->rows == known.rows)) return Fitness::Fit;
  if (there != nullptr && there->rows != kUnknownRows) return Fitness::Unfit;
  if (there == nullptr) {
    ensure_prepared(known.statement);
    if (!is_told || !statements_.has(*known.statement)) return Fitness::Fit;
  }
  if (rows_asked_ == 0) ask_for_rows(*known.statement);
  return Fitness::Asked;
}

ServerConnection::Fitness ServerConnection::tell_form_of(const StatementPtr& statement) {
  ensure_prepared(statement);
  const auto* there = statements_.use(*statement);
  if (there == nullptr) return Fitness::Fit;
  if (there->form != kUnknownRows)
    sink_->on_described(statement->number(), there->form, there->rows);
  else
    ask_for_form(statement->server_name(), statement->number());
  return Fitness::Fit;
}

void ServerConnection::ask_for_form(std::string_view name, std::uint64_t number) {
  Expected* asked = expect(Request::Describe, false);
  if (asked == nullptr) return;
  asked->statement = number;
  asked->tells_form = true;
  ByteBuffer out;
  append_describe(out, name);
  stream_.send_copy(out.bytes());
}

// Flush, not Sync, which would end the transaction of a batch that is under way.
void ServerConnection::ask_for_rows(const PreparedStatement& statement) {
  static constexpr char kFlush[] = {'H', 0, 0, 0, 4};
  ByteBuffer out;
  append_describe(out, statement.server_name());
  Expected* asked = expect(Request::Describe, false);
  asked->statement = statement.number();
  asked->asks_for_rows = true;
  ++rows_asked_;
  stream_.send_copy(out.bytes());
  stream_.send(as_bytes({kFlush, sizeof kFlush}));
}

void ServerConnection::expect_changed_rows(Request request, const PreparedStatement& statement) {
  Expected* expected = expect(request);
  if (expected == nullptr) return;
  expected->statement = statement.number();
  expected->rows_have_changed = true;
}

void ServerConnection::ensure_prepared(const StatementPtr& statement, bool even_retired) {
  if (skips_until_sync_) return;  // the server would not look at it
  if (statements_.use(*statement) != nullptr) return;
  if (statement->is_retired() && !even_retired)
    return;  // the server will say that it is not there, and the client what that means
  note_prepared(statement);
  ByteBuffer out;
  auto undo = std::make_unique<StatementUndo>();
  undo->statement = statement;
  undo->server_added = true;
  if (statement->sql_rest().empty()) {
    append_parse(out, *statement);
    expect(Request::Parse, false, std::move(undo));
  } else {
    append_sql_prepare(out, *statement, kThrowaway);
    for (Request r : {Request::Close, Request::Close, Request::Parse, Request::Bind}) expect(r, false);
    expect(Request::Execute, false, std::move(undo));
  }
  stream_.send_copy(out.bytes());
  if (client_ != nullptr) counters().server_parse_count.add(1);
}

void ServerConnection::send_parse(const PreparedStatement& statement) {
  ByteBuffer out;
  append_parse(out, statement);
  stream_.send_copy(out.bytes());
}

void ServerConnection::ensure_prepared_for_query(const StatementPtr& statement) {
  if (statements_.use(*statement) != nullptr) return;
  ensure_prepared(statement);
  send_own_sync();
}

void ServerConnection::drop_prepared_for_query(const StatementPtr& statement) {
  if (!statements_.has(*statement)) return;
  statements_.remove(*statement);
  auto undo = std::make_unique<StatementUndo>();
  undo->statement = statement;
  undo->server_removed = true;
  expect(Request::Close, false, std::move(undo));
  ByteBuffer out;
  append_close(out, 'S', statement->server_name());
  stream_.send_copy(out.bytes());
  send_own_sync();
}

// So that an error of ours does not make the server skip a Query.
void ServerConnection::send_own_sync() {
  static constexpr char kSync[] = {'S', 0, 0, 0, 4};
  expect(Request::Sync, false);
  stream_.send(as_bytes({kSync, sizeof kSync}));
}

void ServerConnection::expect_query(std::unique_ptr<StatementUndo> undo) {
  expect(Request::Query, true, std::move(undo));
  earlier_changes_ = changes_;  // a simple query is a batch of its own
}

void ServerConnection::note_prepared(const StatementPtr& statement) {
  if (skips_until_sync_) return;
  auto limit = static_cast<std::size_t>(std::max(pooler.options().max_prepared_statements, 1));
  while (statements_.size() >= limit) {
    StatementPtr oldest = statements_.oldest();
    statements_.remove(*oldest);
    ByteBuffer out;
    append_close(out, 'S', oldest->server_name());
    auto undo = std::make_unique<StatementUndo>();
    undo->statement = oldest;
    undo->server_removed = true;
    expect(Request::Close, false, std::move(undo));
    stream_.send_copy(out.bytes());
  }
  statements_.add(statement);
}

void ServerConnection::prepare_throwaway() {
  if (skips_until_sync_) return;
  ByteBuffer out;
  append_close(out, 'S', kThrowaway);  // one whose DEALLOCATE was never executed
  expect(Request::Close, false);
  {
    MessageWriter m(out, 'P');
    m->cstring(kThrowaway);
    m->cstring("");
    m->u16(0);
  }
  expect(Request::Parse, false);
  stream_.send_copy(out.bytes());
}

void ServerConnection::forget_unnamed_but_of(const ClientSession& client) {
  if (unnamed_owner_ == client.id && client.unnamed_server == id) return;
  // Neither another client's unnamed statement nor one that the client has replaced since, on another server, must run:
  // after this Close the server says that there is none.
  static constexpr char kCloseUnnamed[] = {'C', 0, 0, 0, 6, 'S', 0};
  set_unnamed_owner(client.id, expect(Request::Close, false));
  stream_.send(as_bytes({kCloseUnnamed, sizeof kCloseUnnamed}));
}

bool ServerConnection::can_finish_alone() const {
  return !replies_.empty() && !copy_in_ && !skips_until_sync_ && step_ == Step::None &&
         ends_with_ready(replies_.back().request);
}

void ServerConnection::answer_silent_heads() {
  while (!replies_.empty() && is_silent(replies_.front().request)) {
    if (client_ != nullptr) {
      if (replies_.front().request == Request::ParsedHere)
        send_to_client(as_bytes({kParseComplete, sizeof kParseComplete}));
      else if (replies_.front().request == Request::ClosedHere)
        send_to_client(as_bytes({kCloseComplete, sizeof kCloseComplete}));
    }
    pop_reply();
  }
}

void ServerConnection::undo(StatementUndo& undo) {
  if (undo.server_added) statements_.remove(*undo.statement);
  if (undo.server_removed) statements_.add(undo.statement);
  if (client_ == nullptr) return;
  if (undo.client_added) client_->statements().remove(undo.client_name);
  if (undo.client_removed) client_->statements().set(undo.client_name, undo.statement);
}

// Newest first, so that each step finds what it left.
void ServerConnection::undo_from(std::size_t first, std::size_t end) {
  Expected* oldest_skipped = nullptr;
  for (std::size_t i = end; i > first; --i) {
    Expected& e = replies_.at(i - 1);
    if (e.undo) undo(*e.undo);
    // A Parse that was tried and failed has destroyed the unnamed statement before it; one that was skipped has not.
    if (e.sets_unnamed && i - 1 > first) oldest_skipped = &e;
  }
  if (oldest_skipped == nullptr) return;
  // What was sent behind the batch follows on what was before it.
  for (std::size_t i = end; i < replies_.size(); ++i) {
    Expected& next = replies_.at(i);
    if (!next.sets_unnamed) continue;
    next.unnamed_before = oldest_skipped->unnamed_before;
    return;
  }
  unnamed_owner_ = oldest_skipped->unnamed_before;
}

}  // namespace lokadb
