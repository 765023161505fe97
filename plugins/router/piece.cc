// What a statement is about to do, as far as the router has to know it.
#include <algorithm>

#include "route/safe.h"
#include "router.h"

namespace lokadb::router {

bool Piece::may_write() const {
  switch (kind()) {
    case sql::StatementClass::Select:
    case sql::StatementClass::Explain:
      return analysis().access == route::Access::Write || analysis().touch == route::Touch::Unknown || calls_unknown();
    case sql::StatementClass::Set:
    case sql::StatementClass::Transaction:
    case sql::StatementClass::Cursor:
    case sql::StatementClass::Show:
    case sql::StatementClass::Discard:
    case sql::StatementClass::Empty:
      return false;
    default:
      return true;
  }
}

// A function of which nothing is known, by itself or in a view, may write.
bool Piece::calls_unknown() const {
  using route::Reason;
  Reason why = analysis().cloud_reason;
  if (why == Reason::FunctionShadowed || why == Reason::View) return true;
  const auto& calls = text->facts->parsed.statements[number].functions;
  return std::any_of(calls.begin(), calls.end(), [](const sql::FunctionCall& call) {
    bool is_builtin = call.schema.empty() || call.schema == "pg_catalog";
    bool is_known = route::is_safe_function(call.name) || route::is_safe_in_from(call.name) ||
                    !route::why_unsafe(call.name).empty();
    return !(is_builtin && is_known);
  });
}

bool Piece::commits() const {
  using Kind = sql::TransactionControl::Kind;
  const auto& t = text->facts->parsed.statements[number].transaction;
  return t && (t->kind == Kind::Commit || t->kind == Kind::PrepareTransaction || t->kind == Kind::CommitPrepared ||
               t->kind == Kind::RollbackPrepared);
}

bool Piece::ends_transaction() const {
  using Kind = sql::TransactionControl::Kind;
  const auto& t = text->facts->parsed.statements[number].transaction;
  return t && (t->kind == Kind::Commit || t->kind == Kind::Rollback || t->kind == Kind::PrepareTransaction);
}

bool Piece::leaves_locks() const {
  using Kind = sql::TransactionControl::Kind;
  const auto& t = text->facts->parsed.statements[number].transaction;
  return !t || t->kind == Kind::Begin || t->kind == Kind::Savepoint || t->kind == Kind::Release;
}

bool Piece::is_outside_after(bool is_outside) const {
  using Kind = sql::TransactionControl::Kind;
  const auto& t = text->facts->parsed.statements[number].transaction;
  if (!t) return is_outside;
  if (t->kind == Kind::Begin || t->is_chained) return false;
  return is_outside || ends_transaction();
}

bool Piece::sets_modes() const {
  const sql::Statement& s = text->facts->parsed.statements[number];
  if (s.setting && s.setting->kind == sql::Setting::Kind::Transaction) return true;
  const auto& t = s.transaction;
  return t && (!t->isolation.empty() || t->read_only || t->deferrable);
}

bool Piece::changes_role() const {
  const sql::Statement& s = text->facts->parsed.statements[number];
  return s.setting && (s.setting->name == "role" || s.setting->name == "session_authorization");
}

}  // namespace lokadb::router
