// Errors of a server on their way to the client: what the client calls its statements, and what it must be told of
// them.
#include <algorithm>

#include "base/log.h"
#include "pool/batch_watch.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/replaced_text.h"
#include "pool/routing.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxRewrittenError = 65536;
constexpr std::string_view kQuotedServerName = "\"PGBOUNCER_";  // PreparedStatement::server_name() in an error

// Fields of an error.
constexpr std::string_view kChangedRowsCode("\0C0A000\0", 8);
constexpr std::string_view kChangedRowsRoutine("\0RRevalidateCachedQuery\0", 24);
constexpr std::string_view kUnknownStatementCode("\0C26000\0", 8);
constexpr std::string_view kTakenNameCode("\0C42P05\0", 8);

// As the server words it for a statement that it has; drivers look at the routine.
void write_changed_rows(ByteBuffer& out) {
  MessageWriter m(out, 'E');
  for (const char* field :
       {"SERROR", "VERROR", "C0A000", "Mcached plan must not change result type", "RRevalidateCachedQuery"})
    m->cstring(field);
  m->u8(0);
}
}  // namespace

bool ServerConnection::handle_error(Bytes in, std::size_t total, std::size_t& used) {
  if (replies_.empty()) {
    // Nobody asked: the server is about to go (shutdown, timeout, termination), and this says why.
    if (state() == ServerState::Idle && in.size() < total && total < kMaxRewrittenError) return false;
    if (state() == ServerState::Idle) {
      auto fields = parse_error_fields(in.subspan(kHeaderSize, std::min(total, in.size()) - kHeaderSize));
      close(fields ? std::string(fields->message) : "idle server got dirty");
      return true;
    }
    return stream_out(in, total, step_ == Step::None, used);
  }
  Expected& front = replies_.front();
  if (step_ != Step::None && !front.for_client) {
    if (in.size() < total && total <= kMaxRewrittenError) return false;
    auto fields = parse_error_fields(in.subspan(kHeaderSize, std::min(total, in.size()) - kHeaderSize));
    step_failed_ = true;
    if (fields) step_error_ = fatal(std::string(fields->severity) + ": " + std::string(fields->message));
    if (fields && fields->code.size() == 5) step_error_.state = SqlState(fields->code);
    stream_out(in, total, false, used);
  } else if (total > kMaxRewrittenError || client_ == nullptr) {
    if (watch() != nullptr) watch()->failed({});
    stream_out(in, total, true, used);
  } else {
    // In full, since it may be reworded, and the connection may have to be closed because of it. An error of a Parse of
    // our own is the client's too: what follows in its batch is skipped because of it.
    if (in.size() < total) return false;
    used = total;
    tell_error(in.first(total));
  }
  after_error();
  return true;
}

// To the client, in the words that are its own.
void ServerConnection::tell_error(Bytes message) {
  const Expected& front = replies_.front();
  if (watch() != nullptr && !front.is_step) watch()->answered(message);
  if (front.is_refusal) return client_->routing()->tell_refusal();
  if (front.is_step) {
    client_->routing()->step_failed(message, front.is_first_step);
    if (watch() != nullptr && !client_->routing()->is_stale()) watch()->answered(message);
    return;
  }
  std::vector<std::byte> own;
  if (front.longer != 0)  // the name stands in front of everything that an error can point at
    own = with_position(message, [&front](std::size_t position) {
      return static_cast<std::size_t>(
          std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(position) - front.longer, 1));
    });
  else if (client_->routing() != nullptr)
    own = client_->routing()->in_own_words(message, front.replaced);
  if (own.empty()) return send_error(message);
  send_error(own);
  worker_->loop.arena().adopt(std::move(own));  // until it has been sent
}

bool ServerConnection::is_noted(char type) const {
  return type != 't' || (client_ != nullptr && client_->routing() != nullptr);
}

// `body` is empty if the message is too large to be looked at.
void ServerConnection::note_description(const Expected& answered, char type, Bytes body) {
  if (type == 't') {
    described_parameters_ = as_text(body);
    if (answered.for_client && sink_ == nullptr) note_parameter_types(answered.statement, body);
    return;
  }
  RowsMark rows = type == 'n' ? kNoRows : body.empty() ? kUnknownRows : mark_of_rows(body);
  if (!answered.tells_form) return note_rows(answered, rows);
  RowsMark form = form_of_statement(as_bytes(described_parameters_), rows);
  if (answered.statement != 0) {
    statements_.set_rows(answered.statement, rows);
    statements_.set_form(answered.statement, form);
  }
  if (sink_ != nullptr) sink_->on_described(answered.statement, form, rows);
}

// A driver that was told them leaves the types out of its Parse, and sends values as they are written in binary.
void ServerConnection::note_parameter_types(std::uint64_t statement, Bytes body) {
  MessageReader reader(body);
  auto types = std::make_shared<std::vector<std::uint32_t>>();
  for (std::size_t n = reader.u16(); n > 0 && reader.ok(); --n) types->push_back(reader.u32());
  if (reader.finished() && client_ != nullptr) client_->statements().set_types(statement, types);
}

// A description of a statement's rows has come, for the client or for us.
void ServerConnection::note_rows(const Expected& answered, RowsMark rows) {
  if (sink_ != nullptr) return;  // of a database whose types may have other numbers
  StatementPtr statement = statements_.find(answered.statement);
  if (!statement || !statement->has_settled_rows()) return;
  statements_.set_rows(statement->number(), rows);
  bool is_told = answered.for_client || rows == kUnknownRows;  // what cannot be compared is not asked for again
  if (is_told && client_ != nullptr) client_->statements().set_rows(statement->number(), rows);
}

// The rows of the statement that the front uses are others than they were when it was prepared: the server says so, or
// we would not prepare it anew for this reason.
bool ServerConnection::is_about_changed_rows(std::string_view error) {
  std::uint64_t number = replies_.front().statement;
  if (number == 0) return false;
  if (sink_ != nullptr && sink_->wants_forms()) return false;  // nobody is told; it is decided again
  if (replies_.front().rows_have_changed) return error.find(kUnknownStatementCode) != error.npos;
  if (error.find(kChangedRowsCode) != error.npos && error.find(kChangedRowsRoutine) != error.npos) return true;
  bool is_absent = error.find(kUnknownStatementCode) != error.npos && statements_.find(number) == nullptr;
  return is_absent && client_->statements().has_retired(number);
}

// The client has been told, and prepares it anew or goes on with what there is now.
void ServerConnection::forget_changed_statement(std::uint64_t number) {
  if (replies_.front().rows_have_changed) {
    begin_statement_epoch();  // who prepares it anew shall not meet servers that know the old rows
    return client_->statements().set_rows(number, kUnknownRows);
  }
  StatementPtr old = client_->statements().by_number(number);
  if (!old) old = statements_.find(number);
  if (!old) return;
  old->retire();
  StatementPtr anew = old->sql_rest().empty() ? intern_statement(old->body(), pooler.tracked)
                                              : intern_sql_statement(old->sql_rest(), pooler.tracked);
  client_->statements().replace(*old, anew);
}

// PgBouncer's word for a fault of the client's in its statements' names, by which scripts know it; null: it is none.
const char* ServerConnection::statement_fault(std::string_view error) {
  Request failed = replies_.front().request;
  if (client_->mode() == PoolMode::Session || pooler.options().max_prepared_statements <= 0) return nullptr;
  if (failed == Request::Parse && error.find(kTakenNameCode) != error.npos)
    return "prepared statement name is already in use";
  if ((failed == Request::Bind || failed == Request::Describe) && error.find(kUnknownStatementCode) != error.npos)
    return "prepared statement did not exist";
  return nullptr;
}

// In PgBouncer's words.
void ServerConnection::log_statement_fault(const char* fault, std::string_view error) {
  auto fields = parse_error_fields(as_bytes(error));
  std::string_view name = fields ? fields->message : std::string_view();
  name.remove_prefix(std::min(name.find('"') + 1, name.size()));
  name = name.substr(0, name.rfind('"'));
  bool is_taken = replies_.front().request == Request::Parse;
  log_line(LogLevel::Error, "%s prepared statement '%.*s' %s", client_->log_name().c_str(),
           static_cast<int>(name.size()), name.data(), is_taken ? "was already prepared" : "not found");
  if (pooler.options().log_pooler_errors)
    log_line(LogLevel::Warning, "%s pooler error: %s", client_->log_name().c_str(), fault);
}

// A prepared statement is called in the text what the client calls it.
std::string ServerConnection::with_own_name(std::string_view error) {
  std::size_t at = error.find(kQuotedServerName);
  std::size_t end = at == std::string_view::npos ? at : error.find('"', at + 1);
  std::string text(error);
  if (end == std::string_view::npos) return text;
  const Expected& front = replies_.front();
  std::string_view ours = error.substr(at + 1, end - at - 1);
  std::string_view theirs = front.name_is_taken ? front.undo->client_name : client_->statements().name_of(ours);
  if (!theirs.empty()) text.replace(at + 1, ours.size(), theirs);
  return text;
}

void ServerConnection::send_error(Bytes message) {
  std::string_view body = as_text(message.subspan(kHeaderSize));
  ByteBuffer out;
  if (is_about_changed_rows(body)) {
    forget_changed_statement(replies_.front().statement);
    if (body.find(kUnknownStatementCode) != body.npos) {
      write_changed_rows(out);
      return send_own(out);
    }
  }
  const char* fault = statement_fault(body);
  if (fault == nullptr && body.find(kQuotedServerName) == body.npos) return send_to_client(message);
  std::string text = with_own_name(body);
  if (fault != nullptr) {
    log_statement_fault(fault, text);
    text.insert(text.size() - 1, std::string("D") + fault + '\0');
  }
  {
    MessageWriter m(out, 'E');
    m->text(text);
  }
  send_own(out);
}

}  // namespace lokadb
