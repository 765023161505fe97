#include "pool/cloud_batch.h"

#include <algorithm>
#include <limits>

#include "pool/leg_query.h"
#include "pool/pooler.h"
#include "pool/routing.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {

// Not the unnamed one, which may be the client's and still open.
constexpr char kPortal[] = "lokadb_step";

bool stands_in_front(const BatchStep& step) {
  return !step.is_done && step.leg == LOKADB_LEG_CLOUD && step.moment == LOKADB_BEFORE;
}

// The statement in other words, with the types of the further parameters behind those of its own.
StatementPtr statement_of(const BatchReplacement& r, const BatchStatement& statement, const TrackedNames& tracked) {
  ByteBuffer body;
  body.cstring(r.text);
  body.u16(static_cast<std::uint16_t>(statement.parameters.size() + r.values.size()));
  for (const auto& p : statement.parameters) body.u32(p.declared_type);
  for (const auto& v : r.values) body.u32(v.type);
  return intern_statement(body.bytes(), tracked);
}

// The client's Bind for that statement. False: it is malformed.
bool write_client_bind(ByteBuffer& out, Bytes body, const std::string& name, const BatchReplacement& r) {
  MessageReader reader(body);
  std::string_view portal = reader.cstring();
  reader.cstring();
  std::size_t format_count = reader.u16();
  Bytes formats = reader.take(2 * format_count);
  std::size_t count = reader.u16();
  Bytes rest = reader.rest();
  for (std::size_t i = 0; i < count && reader.ok(); ++i)
    if (std::uint32_t size = reader.u32(); size != 0xffffffffu) reader.take(size);
  if (!reader.ok() || (format_count > 1 && format_count != count)) return false;
  Bytes values = rest.first(rest.size() - reader.rest().size());
  MessageWriter m(out, 'B');
  m->cstring(portal);
  m->cstring(name);
  m->u16(static_cast<std::uint16_t>(count + r.values.size()));
  for (std::size_t i = 0; i < count; ++i)
    m->u16(format_count == 0 ? 0 : load_u16(formats.data() + 2 * (format_count == 1 ? 0 : i)));
  for (const auto& v : r.values) m->u16(v.is_binary ? 1 : 0);
  m->u16(static_cast<std::uint16_t>(count + r.values.size()));
  m->append(values);
  write_values(m, r.values);
  m->append(reader.rest());  // formats of the results
  return true;
}

void write_execute_and_close(ByteBuffer& out) {
  {
    MessageWriter m(out, 'E');
    m->cstring(kPortal);
    m->u32(0);
  }
  MessageWriter m(out, 'C');
  m->u8('P');
  m->cstring(kPortal);
}

}  // namespace

CloudBatch::CloudBatch(ClientSession& session, const Batch& batch, Bytes messages, bool has_place)
    : session_(session), batch_(batch), messages_(messages), has_place_(has_place) {
  for (const BatchStep& step : batch_.steps())
    if (stands_in_front(step)) steps_.push_back({&step, place_of(step)});
}

bool CloudBatch::has_work(const Batch& batch) {
  if (!batch.replacements().empty()) return true;
  return std::any_of(batch.steps().begin(), batch.steps().end(), stands_in_front);
}

CloudBatch::Sent CloudBatch::send() {
  ServerConnection* server = session_.leg().server;
  while (at_ < messages_.size()) {
    Bytes rest = messages_.subspan(at_);
    auto head = peek_head(rest);
    Bytes message = rest.first(kHeaderSize + head->body);
    if (!has_begun_) {
      std::size_t before = server->outstanding_count();
      send_steps(at_, *server);
      has_steps_here_ = server->outstanding_count() != before;
      has_begun_ = true;
    }
    Sent sent = send_message(*head, message);
    if (sent != Sent::All) return sent;
    if (session_.leg().server != server) return Sent::Failed;
    at_ += message.size();
    has_begun_ = false;
  }
  return Sent::All;
}

void CloudBatch::send_steps_alone() {
  has_place_ = true;
  send_steps(0, *session_.leg().server);
}

CloudBatch::Sent CloudBatch::as_it_came(MessageHead head, Bytes message) {
  std::size_t used = 0;
  switch (session_.handle_request(head, message, used)) {
    case Outcome::Done:
      return Sent::All;
    case Outcome::Wait:
      return Sent::Waits;
    default:
      return Sent::Failed;
  }
}

// Those of the first statement stand in front of everything, so that the batch can begin anew if they fail. Of others
// in front of the Parse, which locks tables, since a gate may wait for somebody who wants these for himself; but not in
// front of what runs for another statement.
std::size_t CloudBatch::place_of(const BatchStep& step) const {
  if (step.statement == 0) return 0;
  const BatchStatement& statement = batch_.statements()[step.statement];
  if (statement.parse >= statement.message) return statement.message;
  for (std::size_t at = statement.parse; at < statement.message;) {
    auto head = peek_head(messages_.subspan(at));
    if (!head || head->type == 'B' || head->type == 'E') return statement.message;
    at += kHeaderSize + head->body;
  }
  return statement.parse;
}

void CloudBatch::send_steps(std::size_t message, ServerConnection& server) {
  ByteBuffer out;
  for (const auto& [step, place] : steps_) {
    if (place != message) continue;
    StatementPtr prepared = statement_of(*step, server.pooler.tracked);
    server.ensure_prepared(prepared);
    auto expect = [&](Request request) {
      Expected* e = server.expect(request, false);
      if (e == nullptr) return;
      e->is_step = true;
      e->is_first_step = message == 0;
    };
    write_bind(out, kPortal, prepared->server_name(), *step);
    expect(Request::Bind);
    write_execute_and_close(out);
    expect(Request::Execute);
    bool is_last = step == steps_.back().step;
    if (Expected* e = server.last_expected(); is_last && e != nullptr) e->is_last_step = true;
    expect(Request::Close);
    if (is_last && has_place_) MessageWriter(out, 'H');
    server.stream().send_copy(out.bytes());
    out = ByteBuffer();
  }
}

const BatchReplacement* CloudBatch::replacement_at(std::size_t message) const {
  for (const BatchReplacement& r : batch_.replacements())
    if (batch_.statements()[r.statement].message == message) return &r;
  return nullptr;
}

CloudBatch::Sent CloudBatch::send_message(MessageHead head, Bytes message) {
  if (head.type == 'Q' || head.type == 'F') return send_query(head, message);
  const BatchReplacement* r = head.type == 'B' ? replacement_at(at_) : nullptr;
  if (r != nullptr) return send_bind(*r, batch_.statements()[r->statement], message);
  MessageReader reader(message.subspan(kHeaderSize));
  bool describes_statement = head.type == 'D' && reader.u8() == 'S';
  if (head.type == 'P' || describes_statement) {
    std::string_view name = reader.cstring();
    if (head.type == 'P') parses_.insert_or_assign(std::string(name), at_);
    r = replacement_of(name);
    if (r != nullptr && head.type == 'P') return send_parse(*r, message);
    if (r != nullptr && !name.empty()) return send_describe(*r, name);
  }
  return as_it_came(head, message);
}

// Of the statement that has the name here and now: a name, and above all none, may be given to one after the other.
const BatchReplacement* CloudBatch::replacement_of(std::string_view name) const {
  auto parsed = parses_.find(name);
  std::size_t parse = parsed != parses_.end() ? parsed->second : BatchStatement::kEarlier;
  for (const BatchReplacement& r : batch_.replacements()) {
    const BatchStatement& statement = batch_.statements()[r.statement];
    bool is_it = statement.name == name && statement.parse == parse;
    if (r.with_parse && statement.form != LOKADB_SIMPLE && is_it) return &r;
  }
  return nullptr;
}

bool CloudBatch::replaces_unnamed() const {
  const auto& statements = batch_.statements();
  return std::all_of(statements.begin(), statements.end(), [&](const BatchStatement& statement) {
    if (!statement.name.empty() || statement.parse != BatchStatement::kEarlier) return true;
    if (statement.form == LOKADB_PARSE) return false;  // a Describe of it
    return statement.form != LOKADB_BIND || replacement_at(statement.message) != nullptr;
  });
}

std::string_view CloudBatch::unnamed_in_other_words() const {
  for (const BatchReplacement& r : batch_.replacements()) {
    const BatchStatement& statement = batch_.statements()[r.statement];
    bool is_described = statement.form == LOKADB_PARSE && statement.parse == BatchStatement::kEarlier;
    if (is_described && statement.name.empty()) return r.text;
  }
  return {};
}

// A Query or FunctionCall. The steps begin a transaction that it goes on with. If one of them fails, the server skips
// everything up to the Sync behind it, whose answer is the client's then; else nobody's.
CloudBatch::Sent CloudBatch::send_query(MessageHead head, Bytes message) {
  const BatchReplacement* replacement = replacement_at(at_);
  std::uint16_t replaced = 0;
  if (replacement != nullptr) {
    ReplacedText text = replaced_query();
    ByteBuffer out;
    write_query(out, text.text());
    head = *peek_head(out.bytes());
    message = out.bytes();
    session_.worker.loop.arena().adopt(std::move(out.storage()));  // until it has been sent
    replaced = keep(std::move(text));
  }
  ServerConnection& server = *session_.leg().server;
  if (as_it_came(head, message) != Sent::All || session_.leg().server != &server) return Sent::Failed;
  Expected* query = server.last_expected();
  if (query != nullptr && query->request == Request::Query) {
    query->replaced = replaced;
    query->hides_first_tag = replaced != 0 && replacement->has_two;
  }
  if (!has_steps_here_) return Sent::All;
  server.send_own_sync();
  if (Expected* sync = server.last_expected()) sync->stands_in = true;
  return Sent::All;
}

// Pieces of the Query that are not replaced stay as they are.
ReplacedText CloudBatch::replaced_query() const {
  std::string old_text, text;
  std::vector<lokadb_edit> edits;
  for (std::uint32_t i = 0; i < batch_.statements().size(); ++i) {
    const BatchStatement& piece = batch_.statements()[i];
    if (piece.message != at_) continue;
    auto r = std::find_if(batch_.replacements().begin(), batch_.replacements().end(),
                          [i](const BatchReplacement& other) { return other.statement == i; });
    bool is_replaced = r != batch_.replacements().end();
    text += is_replaced ? std::string_view(r->text) : piece.text;
    if (is_replaced)
      for (lokadb_edit e : r->edits) edits.push_back({e.at + old_text.size(), e.removed, e.added});
    old_text += piece.text;
  }
  return {std::move(old_text), std::move(text), edits, is_utf8()};
}

std::uint16_t CloudBatch::keep(ReplacedText text) {
  auto& texts = session_.routing()->replaced();
  if (texts.size() == std::numeric_limits<std::uint16_t>::max()) return 0;
  texts.push_back(std::move(text));
  return static_cast<std::uint16_t>(texts.size());
}

void CloudBatch::note_parsed(const BatchReplacement& replacement, std::size_t before) {
  ServerConnection& server = *session_.leg().server;
  std::uint16_t number = 0;
  for (std::size_t i = before; i < server.outstanding_count(); ++i) {
    Expected& e = server.expected_at(i);
    if (e.request != Request::Parse) continue;
    const BatchStatement& statement = batch_.statements()[replacement.statement];
    if (number == 0)
      number = keep({std::string(statement.text), std::string(replacement.text), replacement.edits, is_utf8()});
    e.replaced = number;
  }
}

// The client's name stands for the text as the client knows it; servers only ever see the other one.
CloudBatch::Sent CloudBatch::send_parse(const BatchReplacement& r, Bytes message) {
  ServerConnection& server = *session_.leg().server;
  MessageReader reader(message.subspan(kHeaderSize));
  std::string_view name = reader.cstring();
  Bytes body = reader.rest();
  reader.cstring();
  Bytes types = reader.rest();
  std::size_t before = server.outstanding_count();
  ByteBuffer replaced;
  replaced.cstring(r.text);
  replaced.append(types);
  if (name.empty()) {
    ByteBuffer out;
    {
      MessageWriter m(out, 'P');
      m->cstring("");
      m->append(replaced.bytes());
    }
    server.set_unnamed_owner(session_.id, server.expect(Request::Parse));
    server.set_unnamed_residue(residue::kNone);
    server.stream().send_copy(out.bytes());
    note_parsed(r, before);
    return Sent::All;
  }
  if (!session_.rewrites_statements() || session_.statements().find(name))
    return as_it_came(*peek_head(message), message);
  server.ensure_prepared(intern_statement(replaced.bytes(), server.pooler.tracked));
  note_parsed(r, before);
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = name;
  undo->statement = intern_statement(body, server.pooler.tracked);
  undo->client_added = true;
  session_.statements().set(name, undo->statement);
  server.expect(Request::ParsedHere, true, std::move(undo));
  return Sent::All;
}

CloudBatch::Sent CloudBatch::send_describe(const BatchReplacement& r, std::string_view name) {
  ServerConnection& server = *session_.leg().server;
  const StatementPtr& own = session_.statements().find(name);
  if (!own) return Sent::Failed;
  MessageReader reader(own->body());
  reader.cstring();
  ByteBuffer body;
  body.cstring(r.text);
  body.append(reader.rest());
  StatementPtr prepared = intern_statement(body.bytes(), server.pooler.tracked);
  std::size_t before = server.outstanding_count();
  server.ensure_prepared(prepared);
  note_parsed(r, before);
  server.expect_use(Request::Describe, *prepared);
  ByteBuffer out;
  {
    MessageWriter m(out, 'D');
    m->u8('S');
    m->cstring(prepared->server_name());
  }
  server.stream().send_copy(out.bytes());
  return Sent::All;
}

// Under the name of the statement in other words. The client's own Parse goes as it came, if it can,
// so that what is wrong with the statement is told of its own text.
CloudBatch::Sent CloudBatch::send_bind(const BatchReplacement& r, const BatchStatement& statement, Bytes message) {
  ServerConnection& server = *session_.leg().server;
  StatementPtr prepared = statement_of(r, statement, server.pooler.tracked);
  // Its columns are those of the client's own, of which it may have been told.
  const ClientStatements::Known& own = session_.statements().look_up(statement.name);
  bool is_told = own.statement != nullptr && own.statement->has_settled_rows();
  std::size_t before = server.outstanding_count();
  auto fitness = server.prepare_for({prepared, is_told ? own.rows : kUnknownRows, nullptr});
  note_parsed(r, before);
  if (fitness == ServerConnection::Fitness::Asked) return Sent::Waits;
  bool is_unfit = fitness == ServerConnection::Fitness::Unfit;
  ByteBuffer out;
  std::string name = is_unfit ? ServerConnection::kNoStatement : prepared->server_name();
  if (!write_client_bind(out, message.subspan(kHeaderSize), name, r)) return Sent::Failed;
  server.note_residue(prepared->residue());
  is_unfit ? server.expect_changed_rows(Request::Bind, *own.statement) : server.expect_use(Request::Bind, *prepared);
  server.stream().send_copy(out.bytes());
  return Sent::All;
}

}  // namespace lokadb
