#include "objections.h"

#include "route/naming.h"
#include "unread.h"

namespace lokadb::router {

using route::Verdict;
using sql::StatementClass;

lokadb_statement Objections::statement(std::uint32_t index) const {
  lokadb_statement s{};
  s.struct_size = sizeof s;
  if (host->statement(batch_, index, &s) != LOKADB_OK) s.form = LOKADB_OTHER;
  return s;
}

// ------------------------------------------------------------------ where nothing is known

std::optional<Refusal> Objections::without_catalog() const {
  if (state_.known.is_unknown() && options_.rejects)
    for (std::uint32_t i = 0; i < info_.statement_count; ++i)
      if (may_be_about_all(i)) return catalog_unknown();
  if (may_name_behind_end()) return one_transaction(named_.held_setting());
  return std::nullopt;
}

// As names_behind_end().
bool Objections::may_name_behind_end() const {
  bool is_behind = false;
  for (std::uint32_t i = 0; i < info_.statement_count; ++i) {
    const lokadb_statement s = statement(i);
    if (s.form != LOKADB_SIMPLE) continue;
    bool is_about_tables = is_behind && may_read_tables(view(s.text));
    if (named_.is_held(i) && (is_about_tables || goes_on_behind_end(view(s.text)))) return true;
    is_behind = is_behind || may_end_transaction(view(s.text));
  }
  return false;
}

// It names no organization, and its tables might be under LokaDB.
bool Objections::may_be_about_all(std::uint32_t index) const {
  const std::string* named = named_.value_for(index);
  if (named != nullptr && !named->empty() && (*named != "*" || named_.is_all_allowed())) return false;
  if (info_.is_whole == 0) return true;
  const lokadb_statement s = statement(index);
  return s.form == LOKADB_SIMPLE || s.form == LOKADB_BIND ? may_touch_tables(view(s.text)) : s.form != LOKADB_PARSE;
}

// ------------------------------------------------------------------ in the cloud

std::optional<Refusal> Objections::in_cloud(const std::vector<Verdict>& verdicts) const {
  if (info_.is_whole == 0 && is_rejected_unread(0)) return unread(Unread::TooLarge, {});
  if (state_.has_unread_portals && (is_rejected_unread(0) || named_.is_held(0))) return unread(Unread::Portals, {});
  for (std::uint32_t index : state_.unread)
    if (auto refusal = to_unread(index)) return refusal;
  for (const Piece& piece : state_.pieces)
    if (named_.is_held(piece.statement) && runs_unseen_query(piece)) return query_of_command(setting());
  if (names_behind_modes()) return modes_first();
  if (names_behind_end(verdicts)) return one_transaction(setting());
  return std::nullopt;
}

std::optional<Refusal> Objections::to_unread(std::uint32_t index) const {
  if (is_rejected_unread(index))
    return unread(state_.syntax_error.empty() ? Unread::Encoding : Unread::Grammar, state_.syntax_error);
  const lokadb_statement s = statement(index);
  if (!named_.is_held(index) || s.form != LOKADB_SIMPLE) return std::nullopt;
  if (begins_with_modes(view(s.text))) return modes_first();
  if (goes_on_behind_end(view(s.text))) return one_transaction(setting());
  return std::nullopt;
}

bool Objections::is_rejected_unread(std::uint32_t index) const {
  if (!options_.rejects) return false;
  route::Session s;
  named_.tell(index, *state_.known.catalog, s);
  return s.naming != route::Session::Naming::One && !(s.naming == route::Session::Naming::All && s.is_allowed);
}

std::optional<Refusal> Objections::to_naming(const Piece& piece) const {
  using Kind = route::NamingEffect::Kind;
  const sql::Statement& facts = piece.text->facts->parsed.statements[piece.number];
  if (facts.kind == StatementClass::Select && facts.functions.empty()) return std::nullopt;
  if (piece.is_parse || named_.is_followed(piece.statement, setting())) return std::nullopt;
  bool has_utf8 = view(info_.client_encoding) == "UTF8";
  route::NamingEffect effect =
      route::naming_effect(facts, {piece.literals->view(), piece.parameters}, setting(), true, has_utf8);
  bool is_unheard = effect.kind == Kind::NotUnderstood || (effect.kind == Kind::Set && !effect.text.empty());
  return is_unheard ? std::optional(naming_not_followed(setting())) : std::nullopt;
}

// The tenant cannot be set in front of it, and what has been named for the session is not on the server.
bool Objections::runs_unseen_query(const Piece& piece) const {
  bool is_command = piece.kind() == StatementClass::Prepare || piece.kind() == StatementClass::Ddl;
  return is_command && !piece.is_parse && runs_query(view(statement(piece.statement).text));
}

// Nothing can stand in front of such a Query, and what is named for the session must stand in front of its
// statements.
bool Objections::names_behind_modes() const {
  if (state_.pieces.size() < 2 || !is_simple(0)) return false;
  bool sets_modes = false, is_named = false;
  for (const Piece& piece : state_.pieces) {
    sets_modes |= piece.sets_modes();
    is_named |= named_.is_held(piece.statement) && !takes_nothing(piece.kind());
  }
  return sets_modes && is_named;
}

// What is set in front of a Query ends with its first transaction.
bool Objections::names_behind_end(const std::vector<Verdict>& verdicts) const {
  bool is_behind = false;
  for (std::size_t i = 0; i < state_.pieces.size(); ++i) {
    const Piece& piece = state_.pieces[i];
    if (!is_simple(piece.statement)) continue;
    bool may_read = verdicts[i].whose != Verdict::Whose::NoTables || piece.kind() == StatementClass::Cursor;
    if (is_behind && may_read && !takes_nothing(piece.kind()) && named_.is_held(piece.statement)) return true;
    is_behind = is_behind || piece.ends_transaction();
  }
  return false;
}

}  // namespace lokadb::router
