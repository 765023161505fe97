// What is looked at in the SQL of clients that share servers: whether it leaves something in the session, and SQL
// PREPARE and EXECUTE, whose names are replaced as those of Parse and Bind are.
#include <algorithm>
#include <cstring>

#include "pool/client_session.h"
#include "pool/function_call.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxStatements = 65536;  // of one client
}  // namespace

bool ClientSession::shares_servers() const { return mode() != PoolMode::Session; }

// ------------------------------------------------------------------ what is left in the session

// `text` ends with its zero byte, and what else the message has, if it is whole.
void ClientSession::note_text(Bytes text, bool is_whole, bool is_unnamed_parse) {
  std::string_view sql = as_text(text);
  Residue found = residue::kUnread;
  if (is_whole) {
    if (!has_suspicious_word(sql)) {
      if (is_unnamed_parse) leg_.server->set_unnamed_residue(residue::kNone);
      return;
    }
    found = residue_of(sql.substr(0, sql.find('\0')), pooler.tracked);
  } else {
    streams_text_ = true;
    streams_unnamed_ = is_unnamed_parse;
    tail_size_ = 0;
  }
  if (is_unnamed_parse)
    leg_.server->set_unnamed_residue(found);
  else
    leg_.server->note_residue(found);
  if (!is_whole) note_piece(text);
}

void ClientSession::note_piece(Bytes piece) {
  std::string_view text = as_text(piece);
  // Where the last piece ended and this one begins.
  char seam[2 * kResidueOverlap];
  std::memcpy(seam, tail_.data(), tail_size_);
  std::size_t more = std::min(text.size(), kResidueOverlap);
  std::memcpy(seam + tail_size_, text.data(), more);
  Residue found = residue_of_piece({seam, tail_size_ + more}) | residue_of_piece(text);
  if (text.size() >= kResidueOverlap) {
    tail_size_ = kResidueOverlap;
    std::memcpy(tail_.data(), text.data() + text.size() - kResidueOverlap, kResidueOverlap);
  } else {
    std::size_t whole = tail_size_ + more;
    tail_size_ = std::min(whole, kResidueOverlap);
    std::memcpy(tail_.data(), seam + whole - tail_size_, tail_size_);
  }
  if (found == residue::kNone) return;
  streams_unnamed_ ? leg_.server->add_unnamed_residue(found) : leg_.server->note_residue(found);
}

void ClientSession::note_function_call(Bytes in) {
  if (!is_large_object_call(in.subspan(std::min(in.size(), kHeaderSize))))
    leg_.server->note_residue(residue::kSettings | residue::kState);
}

// Of which the server has not seen the end yet, so that nothing of it has run.
Outcome ClientSession::refuse_several_transactions() {
  Error e{SqlState("0A000"),
          Severity::Fatal,
          "lokadb: a Query larger than max_routed_message has several transactions",
          {}};
  e.hint = "Send each transaction by itself, or raise max_routed_message.";
  return refuse(e);
}

// ------------------------------------------------------------------ PREPARE, EXECUTE

// nullopt: it is neither, or of a statement that only the server can know.
std::optional<Outcome> ClientSession::handle_statement_command(std::string_view sql) {
  auto made = prepared_by(sql);
  auto run = made ? std::nullopt : executed_by(sql);
  if (!made && (!run || !statements_.find(run->name))) return std::nullopt;
  if (Outcome o = with_settled_statements(); o != Outcome::Done) return o;
  if (leg_.server->is_undecided()) return Outcome::Wait;
  return made ? prepare_by_sql(*made, sql) : execute_by_sql(*run, sql);
}

Outcome ClientSession::execute_by_sql(const NamedStatement& run, std::string_view sql) {
  ServerConnection& server = *leg_.server;
  StatementPtr statement = statements_.find(run.name);
  if (!statement) return Outcome::Wait;
  bool is_failed = server.transaction_status() == 'E';
  if (!is_failed) server.ensure_prepared_for_query(statement);
  server.note_residue(statement->residue() | residue_of(sql, pooler.tracked));
  server.expect_query(nullptr);
  server.last_expected()->statement = statement->number();
  send_query(sql, run, statement->server_name());
  return Outcome::Done;
}

Outcome ClientSession::prepare_by_sql(const NamedStatement& made, std::string_view sql) {
  ServerConnection& server = *leg_.server;
  bool is_failed = server.transaction_status() == 'E';
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = made.name;
  if (StatementPtr there = statements_.find(made.name)) {
    // The server itself shall say that the name is in use, as for a Parse.
    if (!is_failed) server.ensure_prepared_for_query(there);
    undo->statement = there;
    server.expect_query(std::move(undo));
    server.last_expected()->name_is_taken = true;
    send_query(sql, made, there->server_name());
    return Outcome::Done;
  }
  if (statements_.size() >= kMaxStatements)
    return refuse({sqlstate::kProgramLimitExceeded, Severity::Fatal, "too many prepared statements", {}});
  StatementPtr statement = intern_sql_statement(rest_of_prepare(sql, made), pooler.tracked);
  undo->statement = statement;
  undo->client_added = true;
  statements_.set(made.name, statement);
  if (!is_failed) {
    server.drop_prepared_for_query(statement);
    server.note_prepared(statement);
    undo->server_added = true;
  }
  server.expect_query(std::move(undo));
  send_query(sql, made, statement->server_name());
  return Outcome::Done;
}

void ClientSession::send_query(std::string_view sql, const NamedStatement& named, std::string_view name) {
  ByteBuffer out;
  {
    MessageWriter m(out, 'Q');
    m->text(sql.substr(0, named.begin));
    m->u8('"');
    m->text(name);
    m->u8('"');
    m->cstring(sql.substr(named.end));
  }
  leg_.server->stream().send_copy(out.bytes());
  std::string_view own = sql.substr(named.begin, named.end - named.begin);
  auto characters = std::count_if(own.begin(), own.end(), [](char c) { return (c & 0xc0) != 0x80; });  // of UTF-8
  leg_.server->last_expected()->longer =
      static_cast<std::int16_t>(static_cast<std::ptrdiff_t>(name.size() + 2) - characters);
}

// EXECUTE as the unnamed statement. `text`: query and types.
std::optional<Outcome> ClientSession::parse_execute(MessageHead head, Bytes text) {
  std::string_view sql = as_text(text).substr(0, as_text(text).find('\0'));
  auto run = executed_by(sql);
  if (!run || !statements_.find(run->name)) return std::nullopt;
  ServerConnection& server = *leg_.server;
  if (server.has_unsettled_statements()) return Outcome::Wait;
  const StatementPtr& statement = statements_.find(run->name);
  server.ensure_prepared(statement);
  server.set_unnamed_owner(id, server.expect(Request::Parse));
  server.set_unnamed_residue(statement->residue() | residue_of(sql, pooler.tracked));
  ByteBuffer out;
  {
    MessageWriter m(out, head.type);
    m->u8(0);
    m->text(sql.substr(0, run->begin));
    m->u8('"');
    m->text(statement->server_name());
    m->u8('"');
    m->text(sql.substr(run->end));
    m->append(text.subspan(sql.size()));
  }
  server.stream().send_copy(out.bytes());
  return Outcome::Done;
}

}  // namespace lokadb
