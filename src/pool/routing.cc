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

constexpr std::string_view kFlush{"H\0\0\0\4", kHeaderSize};
}  // namespace

Routing::Routing(ClientSession& session, PluginChain& chain)
    : session_(session), chain_(chain), slots_(chain.begin_session(session.database()->name, session.user()->name)) {
  {
    std::lock_guard guard(session.pooler.lock);
    welcome_ = session.pool()->welcome;
  }
  if (chain.observes()) session_.watch_ = &watch_.emplace(chain, slots_);
}

Routing::~Routing() {
  session_.watch_ = nullptr;
  chain_.end_session(slots_);
}

bool Routing::is_busy() const { return run_ != nullptr && !run_->can_be_acted_on(); }

std::optional<Outcome> Routing::look_at(MessageHead head, Bytes in, std::size_t& used) {
  if (run_ != nullptr) return run_->can_be_acted_on() ? act_on(head, in, used) : std::optional(Outcome::Wait);
  if (skips_to_sync_) return skip_to_sync(head, in, used);
  if (large_ == Large::Passes && large_is_executed_ && (head.type == 'P' || head.type == 'B')) {
    // What comes now is a batch of its own.
    large_ = Large::None;
    is_open_ = lacks_flush_ = true;
  }
  if (large_ != Large::None) return look_at_large(head, in, used);
  std::uint64_t position = session_.marks_.position;
  if (position < decided_until_) return std::nullopt;
  if (!begins_batch(head.type)) {
    if (head.type == 'S') is_open_ = false;
    return std::nullopt;
  }
  // What is decided depends on how the batch before it ended.
  if (session_.is_linked() && std::exchange(lacks_flush_, false)) send_flush();
  if (session_.is_linked() && session_.leg_.server->owes_answers()) return Outcome::Wait;
  // An error in a batch that ended in Flush: nothing is run, and nothing of ours would be answered, before the Sync.
  if (session_.is_linked() && session_.leg_.server->skips_until_sync()) return std::nullopt;
  BatchEnd end = find_batch_end(in);
  bool is_whole = end.size > 0;
  if (!is_whole && in.size() < session_.pooler.options().max_routed_message) return Outcome::NeedMore;
  if (!is_whole) end = find_last_execute(in);
  is_whole = end.size > 0;
  lacks_flush_ = end.lacks_its_last;
  make_run(is_whole ? in.first(end.size) : in, end.last, is_whole);
  if (run_ == nullptr) {  // nothing in it to be decided
    decided_from_ = position;
    decided_until_ = position + end.size;
    is_open_ = end.last == 'H';
    return std::nullopt;
  }
  if (run_->can_be_acted_on()) return act_on(head, in, used);
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
  large_is_executed_ = large_is_executed_ || head.type == 'E';
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
  if (watch_) watch_->tell();
  std::vector<std::byte> copy(batch.begin(), batch.end());
  if (lacks_flush_) copy.insert(copy.end(), as_bytes(kFlush).begin(), as_bytes(kFlush).end());
  std::optional<ReadBatch> read;
  if (is_whole) read = read_batch(copy, session_.statements(), unnamed_);
  if (is_whole && read && read->statements.empty()) return remember_unnamed(*read);
  if (!read) {
    read.emplace();
    read->statements.emplace_back().form = LOKADB_OTHER;
    read->statements.back().is_unread = is_whole;
    if (last == 'Q') read->ends.query = 1;  // whatever ends there was not seen
    read->last = last;
  }
  run_ =
      std::make_unique<RoutedBatch>(session_, *this, std::move(copy), std::move(*read), make_context(last, is_whole));
  run_->decide();
}

BatchContext Routing::make_context(char last, bool is_whole) {
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
  c.servers = session_.pool()->changes;
  c.setting = [this](std::string_view name) { return setting(name); };
  c.own_setting = [this](std::string_view name) { return own_setting(name); };
  know_settings(c);
  return c;
}

void Routing::know_settings(BatchContext& c) {
  {
    std::lock_guard guard(session_.pooler.lock);
    // After RECONNECT what servers begin with is not known until the next login. One that the client has is as it was.
    const auto& newest = session_.pool()->welcome;
    if (newest != nullptr || !session_.is_linked()) welcome_ = newest;
  }
  c.client_encoding = c.setting("client_encoding");
  c.has_standard_strings = c.setting("standard_conforming_strings") != "off";
}

std::string_view Routing::own_setting(std::string_view name) const {
  const auto& taken = session_.taken_parameters_;
  for (auto it = taken.rbegin(); it != taken.rend(); ++it)  // the last of a name counts
    if (it->first == name) return it->second;
  auto index = session_.pooler.tracked.index(name);
  if (!index) return {};
  const auto& own = session_.parameters()->values()[*index];
  return own ? std::string_view(*own) : std::string_view();
}

std::string_view Routing::setting(std::string_view name) const {
  if (std::string_view own = own_setting(name); own.data() != nullptr) return own;
  auto index = session_.pooler.tracked.index(name);
  if (!index || welcome_ == nullptr) return {};
  const auto& value = welcome_->tracked->values()[*index];
  return value ? std::string_view(*value) : std::string_view();
}

// The message at the front is the first of a large batch, and perhaps its last.
std::optional<Outcome> Routing::act_on(MessageHead head, Bytes in, std::size_t& used) {
  auto outcome = act(head, used);
  return !outcome && large_ != Large::None ? look_at_large(head, in, used) : outcome;
}

// The verdict is there, or all has been done.
std::optional<Outcome> Routing::act(MessageHead head, std::size_t& used) {
  std::size_t size = run_->messages().size() - (lacks_flush_ ? kFlush.size() : 0);
  char last = run_->read().last;
  if (run_->is_over() && !run_->is_whole()) {
    if (run_->has_failed())
      large_ = Large::IsRefused;
    else
      pass_large(head, true);
    session_.worker.loop.bury(std::move(run_));
    return std::nullopt;
  }
  if (run_->is_over()) {
    used = size;
    remember_unnamed(run_->read());
    is_open_ = run_->is_in_cloud() && last == 'H';
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
      commits_ = verdict.commits;
      if (watch_) watch_->begin(run_->read().ends);
      if (run_->has_cloud_work()) {
        run_->start_in_cloud();
        if (session_.state() == ClientState::Closed) return Outcome::Closed;
        return run_->is_over() ? act(head, used) : std::optional(Outcome::Wait);
      }
      // It could not be decided again where what it begins with is forgotten.
      decided_from_ = run_->read().binds_earlier_unnamed && run_->read().unnamed_parse ? 0 : session_.marks_.position;
      remember_unnamed(run_->read());
      is_open_ = last == 'H';
      if (run_->is_whole())
        decided_until_ = session_.marks_.position + size;
      else
        pass_large(head, false);
      session_.worker.loop.bury(std::move(run_));
      return std::nullopt;
  }
}

// head: of its first message. Steps in front of it hold for one transaction, which only a Query can go on behind
// unseen.
void Routing::pass_large(MessageHead head, bool has_steps) {
  large_ = Large::Passes;
  large_is_executed_ = false;
  if (has_steps && head.type == 'Q' && session_.shares_servers())
    session_.scan_ =
        std::make_unique<TransactionScan>(setting("client_encoding"), setting("standard_conforming_strings") != "off");
}

void Routing::remember_unnamed(const ReadBatch& batch) {
  if (batch.closes_unnamed) unnamed_ = {};
  if (batch.closes_unnamed || !batch.unnamed_parse) return;
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

void Routing::send_unnamed(ServerConnection& server, std::string_view other_words) {
  std::string_view own = as_text(unnamed_.body).substr(0, as_text(unnamed_.body).find('\0'));
  std::string_view sql = other_words.empty() ? own : other_words;
  ByteBuffer out;
  {
    MessageWriter m(out, 'P');
    m->cstring("");
    m->text(sql);
    m->append(Bytes(unnamed_.body).subspan(own.size()));
  }
  server.set_unnamed_owner(session_.id, server.expect(Request::Parse, false));
  // As it stands there: nothing in it is done by the proxy instead.
  server.set_unnamed_residue(residue_of(sql, session_.pooler.tracked) & static_cast<Residue>(~residue::kCalls));
  server.stream().send_copy(out.bytes());
}

// A batch that a Query stands behind has none: its answers would wait for the Query, which waits for them.
void Routing::send_flush() {
  session_.leg_.server->skip_silent_heads();
  session_.leg_.server->stream().send(as_bytes(kFlush));
}

void Routing::tell_refusal() { session_.stream_.send_copy(refusal_); }

// ------------------------------------------------------------------ steps in the client's own database

void Routing::steps_passed() {
  if (run_ != nullptr) run_->steps_passed();
}

ServerConnection* Routing::gate_server() const { return run_ != nullptr ? run_->gate_server() : nullptr; }

bool Routing::is_stale() const { return run_ != nullptr && run_->is_stale(); }

void Routing::step_failed(Bytes error, bool is_first) {
  auto fields = parse_error_fields(error.subspan(kHeaderSize));
  std::string_view code = fields ? fields->code : std::string_view();
  if (run_ != nullptr && run_->step_failed(code, is_first)) return;
  if (code != kStaleRouting) return session_.stream_.send_copy(error);
  ByteBuffer out;
  write_error(out, {SqlState("40001"), Severity::Error, "the routing of the organization has changed; try again", {}});
  session_.stream_.send_copy(out.bytes());
}

// An answer to the COMMIT of postgres_fdw that did not come leaves it open whether the rows are there.
constexpr std::string_view kRemoteCommit = "COMMIT TRANSACTION";

std::vector<std::byte> Routing::in_own_words(Bytes error, std::size_t replaced) const {
  if (replaced > 0 && replaced <= replaced_.size()) return replaced_[replaced - 1].with_own_position(error);
  std::string_view text = as_text(error);
  auto fields = parse_error_fields(error.subspan(kHeaderSize));
  bool is_unknown = fields && fields->code.starts_with("08") && text.find(kRemoteCommit) != text.npos;
  if (!is_unknown) return {};
  std::vector<std::byte> own(error.begin(), error.end());
  Bytes code = as_bytes(sqlstate::kCompletionUnknown);
  std::copy(code.begin(), code.end(), own.begin() + (fields->code.data() - text.data()));
  return own;
}

void Routing::server_is_ready() {
  commits_ = LOKADB_COMMITS_NOTHING;
  kept_tag_.clear();
  if (run_ != nullptr) run_->server_is_ready();
}

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

bool Routing::may_move() {
  if (watch_) {
    if (session_.is_linked() && session_.leg_.server->owes_answers()) return false;
    watch_->tell();
  }
  std::uint64_t position = session_.marks_.position;
  bool is_between_batches = position >= decided_until_ || position == decided_from_;
  if (run_ != nullptr || large_ != Large::None || is_open_ || skips_to_sync_ || !is_between_batches) return false;
  auto saved = chain_.save_session(slots_);
  if (saved) saved_ = std::move(*saved);
  return saved.has_value();
}

void Routing::session_ended() {
  has_ended_ = true;
  if (run_ != nullptr) run_->abandon();
}

}  // namespace lokadb
