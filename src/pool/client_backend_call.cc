// pg_cancel_backend() and pg_terminate_backend() with the number that a client was given at its login.
#include "pool/backend_call.h"
#include "pool/cancel.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::uint32_t kBoolType = 16;

Residue kind_of(const BackendCall& call) { return call.terminates ? residue::kTerminateCall : residue::kCancelCall; }

std::string_view text_before_zero(Bytes text) { return as_text(text).substr(0, as_text(text).find('\0')); }

// One row that says that it was done.
void write_done(ByteBuffer& out, const BackendCall& call) {
  {
    MessageWriter m(out, 'T');
    m->u16(1);
    m->cstring(call.terminates ? "pg_terminate_backend" : "pg_cancel_backend");
    m->u32(0);
    m->u16(0);
    m->u32(kBoolType);
    m->u16(1);
    m->u32(0xffffffff);
    m->u16(0);
  }
  {
    MessageWriter m(out, 'D');
    m->u16(1);
    m->u32(1);
    m->text("t");
  }
  MessageWriter m(out, 'C');
  m->cstring("SELECT 1");
}
}  // namespace

// False: no other client of the same user has this number. It may be that of a process of the server.
bool ClientSession::signal_by_number(bool terminates, std::uint32_t number) {
  ClientSession* target = nullptr;
  {
    std::lock_guard guard(pooler.lock);
    auto it = pooler.numbers.find(number);
    if (it == pooler.numbers.end() || it->second == this || it->second->user_ != user_) return false;
    target = it->second;
    ++target->in_flight;
  }
  target->worker.loop.post([target, terminates] {
    if (!target->arrived()) return;
    terminates ? target->terminate() : CancelJob::cancel(*target);
  });
  return true;
}

// As a simple query: answered here, and so without a server, which the other client may have. Not in the middle of
// other answers or in a failed transaction.
bool ClientSession::called_here(std::string_view sql) {
  if (!may_be_backend_call(sql)) return false;
  if (is_linked() && (leg_.server->owes_answers() || leg_.server->transaction_status() == 'E')) return false;
  auto call = backend_call(sql);
  if (!call || !call->number || !signal_by_number(call->terminates, *call->number)) return false;
  ByteBuffer out;
  write_done(out, *call);
  write_ready_for_query(out, is_linked() ? leg_.server->transaction_status() : 'I');
  stream_.send_copy(out.bytes());
  return true;
}

// As the unnamed statement. `text`: query and types.
bool ClientSession::parse_backend_call(Bytes text) {
  if (!may_be_backend_call(as_text(text))) return false;
  std::string_view sql = text_before_zero(text);
  auto call = backend_call(sql);
  ServerConnection& server = *leg_.server;
  bool is_failed = server.transaction_status() == 'E';
  if (!call || is_failed || (call->number && !signal_by_number(call->terminates, *call->number))) return false;
  server.set_unnamed_owner(id, server.expect(Request::Parse));
  server.set_unnamed_residue(call->number ? residue::kNone : kind_of(*call));
  ByteBuffer out;
  {
    MessageWriter m(out, 'P');
    m->u8(0);
    m->text(done_instead(*call));
    m->append(text.subspan(sql.size()));
  }
  server.stream().send_copy(out.bytes());
  return true;
}

StatementPtr ClientSession::intern_backend_call(const BackendCall& call, Bytes text) {
  std::string body = done_instead(call);
  body += as_text(text.subspan(text_before_zero(text).size()));
  return intern_statement(as_bytes(body), pooler.tracked, kind_of(call));
}

// statement: null for the unnamed one.
Outcome ClientSession::bind_backend_call(const StatementPtr& statement, MessageHead head, Bytes in,
                                                        std::size_t& used) {
  used = kHeaderSize + head.body;
  if (in.size() < used) return Outcome::NeedMore;
  ServerConnection& server = *leg_.server;
  Bytes body = in.subspan(kHeaderSize, head.body);
  bool terminates = ((statement ? statement->residue() : server.unnamed_residue()) & residue::kTerminateCall) != 0;
  auto number = server.transaction_status() == 'E' ? std::nullopt : bound_number(body);
  bool is_done = number && signal_by_number(terminates, *number);
  std::string changed = is_done ? with_negative_number(body) : std::string(as_text(body));
  std::size_t name_at = changed.find('\0') + 1;
  std::size_t name_end = changed.find('\0', name_at);
  if (statement) changed.replace(name_at, name_end - name_at, statement->server_name());
  server.expect_plain(Request::Bind);
  ByteBuffer out;
  {
    MessageWriter m(out, 'B');
    m->text(changed);
  }
  server.stream().send_copy(out.bytes());
  return Outcome::Done;
}

}  // namespace lokadb
