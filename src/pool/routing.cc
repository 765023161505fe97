#include "pool/routing.h"

#include "base/log.h"
#include "pool/pooler.h"
#include "pool/routed_batch.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
Error error_of(const BatchVerdict& v) {
  Error e{SqlState(v.sqlstate), Severity::Error, v.message, {}};
  e.detail = v.detail;
  e.hint = v.hint;
  return e;
}
}  // namespace

Routing::Routing(ClientSession& session, PluginChain& chain)
    : session_(session), chain_(chain), slots_(chain.begin_session(session.database()->name, session.user()->name)) {}

Routing::~Routing() { chain_.end_session(slots_); }

bool Routing::is_busy() const { return run_ != nullptr && !run_->can_be_acted_on(); }

std::optional<Outcome> Routing::look_at(MessageHead head, Bytes in, std::size_t& used) {
  if (run_ != nullptr) return run_->can_be_acted_on() ? act(used) : std::optional(Outcome::Wait);
  if (skips_to_sync_) return skip_to_sync(head, in, used);
  if (large_ != Large::None) return look_at_large(head, in, used);
  std::uint64_t position = session_.marks_.position;
  if (position < decided_until_) return std::nullopt;
  if (!begins_batch(head.type)) {
    if (head.type == 'S') is_open_ = false;
    return std::nullopt;
  }
  // What is decided depends on how the batch before it ended.
  if (session_.is_linked() && session_.leg_.server->owes_answers()) return Outcome::Wait;
  BatchEnd end = find_batch_end(in);
  bool is_whole = end.size > 0;
  if (!is_whole && in.size() < session_.pooler.options().max_routed_message) return Outcome::NeedMore;
  make_run(is_whole ? in.first(end.size) : in, end.last, is_whole);
  if (run_ == nullptr) {  // nothing in it to be decided
    decided_from_ = position;
    decided_until_ = position + end.size;
    is_open_ = end.last == 'H';
    return std::nullopt;
  }
  if (run_->can_be_acted_on()) return act(used);
  return session_.state() == ClientState::Closed ? Outcome::Closed : Outcome::Wait;
}

// After an error in the middle of an extended batch.
std::optional<Outcome> Routing::skip_to_sync(MessageHead head, Bytes in, std::size_t& used) {
  if (head.type == 'X') return std::nullopt;
  if (head.type != 'S') return session_.skip(head, in, used);
  if (in.size() < kHeaderSize + head.body) return Outcome::NeedMore;
  used = kHeaderSize + head.body;
  skips_to_sync_ = false;
  end_batch_after_error('S');
  return Outcome::Done;
}

void Routing::end_batch_after_error(char last) {
  is_open_ = false;
  if (last == 'H' || last == 0) {
    skips_to_sync_ = true;
    return;
  }
  ByteBuffer out;
  write_ready_for_query(out, session_.is_linked() ? session_.leg_.server->transaction_status() : 'I');
  session_.stream_.send_copy(out.bytes());
}

// Its messages go on, or are dropped, one by one.
std::optional<Outcome> Routing::look_at_large(MessageHead head, Bytes in, std::size_t& used) {
  bool is_last = std::string_view("QSHF").find(head.type) != std::string_view::npos;
  bool is_refused = large_ == Large::IsRefused;
  if (is_last) {
    large_ = Large::None;
    is_open_ = head.type == 'H';
  }
  decided_until_ = session_.marks_.position + kHeaderSize + head.body;
  if (!is_refused || head.type == 'X') return std::nullopt;
  if (is_last) refuse_with_last(head.type);
  return session_.skip(head, in, used);
}

void Routing::make_run(Bytes batch, char last, bool is_whole) {
  std::vector<std::byte> copy(batch.begin(), batch.end());
  std::optional<ReadBatch> read;
  if (is_whole) read = read_batch(copy, session_.statements(), unnamed_);
  if (is_whole && read && read->statements.empty()) return;
  if (!read) {
    read.emplace();
    read->statements.emplace_back().form = LOKADB_OTHER;
    read->last = last;
  }
  run_ =
      std::make_unique<RoutedBatch>(session_, *this, std::move(copy), std::move(*read), make_context(last, is_whole));
  run_->decide();
}

BatchContext Routing::make_context(char last, bool is_whole) {
  Pooler& pooler = session_.pooler;
  BatchContext c;
  c.database = session_.database()->name;
  c.role = session_.user()->name;
  c.transaction_status = session_.is_linked() ? session_.leg_.server->transaction_status() : 'I';
  if (is_open_ && c.transaction_status == 'I') c.transaction_status = 'T';
  c.ends_in_flush = last == 'H';
  c.is_whole = is_whole;
  // A server that stays with the client because of what it has left there is as good as in session pooling.
  bool is_pinned = session_.is_linked() && session_.leg_.server->is_pinned();
  c.is_session_pooled = is_pinned || session_.pool()->settings.mode == PoolMode::Session;
  c.slots = &slots_;
  c.setting = [this, &pooler](std::string_view name) -> std::string_view {
    auto index = pooler.tracked.index(name);
    if (!index) return {};
    if (const auto& own = session_.parameters()->values()[*index]) return *own;
    auto welcome = session_.pool()->welcome;
    if (welcome == nullptr) return {};
    const auto& value = welcome->tracked->values()[*index];
    return value ? std::string_view(*value) : std::string_view();
  };
  c.client_encoding = c.setting("client_encoding");
  c.has_standard_strings = c.setting("standard_conforming_strings") != "off";
  return c;
}

// The verdict is there, or all has been done.
std::optional<Outcome> Routing::act(std::size_t& used) {
  std::size_t size = run_->messages().size();
  char last = run_->read().last;
  if (run_->is_over()) {
    used = size;
    remember_unnamed(run_->read());
    session_.worker.loop.bury(std::move(run_));
    return Outcome::Done;
  }
  const BatchVerdict& verdict = run_->verdict();
  switch (verdict.kind) {
    case LOKADB_REFUSE: {
      ByteBuffer out;
      write_error(out, error_of(verdict));
      refusal_ = std::move(out.storage());
      bool is_whole = run_->is_whole();
      session_.worker.loop.bury(std::move(run_));
      if (!is_whole) {
        large_ = Large::IsRefused;
        return std::nullopt;
      }
      used = size;
      refuse_with_last(last);
      return session_.state() == ClientState::Closed ? Outcome::Closed : Outcome::Done;
    }
    case LOKADB_DIRECT:
      run_->start();
      if (session_.state() == ClientState::Closed) return Outcome::Closed;
      return Outcome::Wait;
    default:
      // It could not be decided again where what it begins with is forgotten.
      decided_from_ = run_->read().binds_earlier_unnamed && run_->read().unnamed_parse ? 0 : session_.marks_.position;
      remember_unnamed(run_->read());
      is_open_ = last == 'H';
      if (run_->is_whole())
        decided_until_ = session_.marks_.position + size;
      else
        large_ = Large::Passes;
      session_.worker.loop.bury(std::move(run_));
      return std::nullopt;
  }
}

void Routing::remember_unnamed(const ReadBatch& batch) {
  if (!batch.unnamed_parse) return;
  unnamed_.body.assign(batch.unnamed_parse->begin(), batch.unnamed_parse->end());
  unnamed_.is_known = true;
}

// The error of a refused batch; inside a transaction the server has to fail, too. last: its last message.
void Routing::refuse_with_last(char last) {
  if (session_.is_linked()) return refuse_on_server(last);
  session_.stream_.send_copy(refusal_);
  end_batch_after_error(last);
}

// A Parse that no server accepts, whose error is replaced by ours, and the Sync that the client waits for.
void Routing::refuse_on_server(char last) {
  ServerConnection& server = *session_.leg_.server;
  ByteBuffer out;
  {
    MessageWriter m(out, 'P');
    m->cstring("");
    m->cstring("refused by a plugin");
    m->u16(0);
  }
  Expected* expected = server.expect(Request::Parse);
  server.set_unnamed_owner(session_.id, expected);
  if (expected != nullptr) expected->is_refusal = true;
  if (last != 'H' && last != 0) {
    MessageWriter m(out, 'S');
    server.expect(Request::Sync);
  }
  is_open_ = last == 'H' || last == 0;
  server.stream().send_copy(out.bytes());
}

void Routing::send_unnamed(ServerConnection& server) {
  ByteBuffer out;
  {
    MessageWriter m(out, 'P');
    m->cstring("");
    m->append(unnamed_.body);
  }
  server.set_unnamed_owner(session_.id, server.expect(Request::Parse, false));
  server.stream().send_copy(out.bytes());
}

void Routing::tell_refusal() { session_.stream_.send_copy(refusal_); }

// ------------------------------------------------------------------ news

void Routing::run_has_news() {
  if (has_ended_) return;
  session_.is_stalled_ = false;
  session_.worker.loop.resume_later(session_);
}

bool Routing::resumed() {
  if (run_ == nullptr || run_->can_be_acted_on()) return false;
  run_->resumed();
  return is_busy();
}

void Routing::server_given(ServerConnection& server) {
  if (run_ != nullptr) run_->server_given(server);
}
void Routing::parameters_set(ServerConnection& server) {
  if (run_ != nullptr) run_->parameters_set(server);
}
bool Routing::server_refused(const Error& error) { return run_ != nullptr && run_->server_refused(error); }
void Routing::feeds_are_fresh() {
  if (run_ != nullptr) run_->feeds_are_fresh();
}
// A batch that is gone has no use for it.
void Routing::gate_has_news(Gates::Place place) {
  if (run_ != nullptr) return run_->gate_has_news(std::move(place));
  leave_gate(session_.pooler, place, false);
}

bool Routing::may_move() const {
  std::uint64_t position = session_.marks_.position;
  bool is_between_batches = position >= decided_until_ || position == decided_from_;
  return run_ == nullptr && large_ == Large::None && !is_open_ && !skips_to_sync_ && is_between_batches;
}

void Routing::session_ended() {
  has_ended_ = true;
  if (run_ != nullptr) run_->abandon();
}

}  // namespace lokadb
