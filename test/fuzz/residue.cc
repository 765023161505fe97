// What a statement may leave in a session: the look at its text, whole and in pieces as it streams. Input: any bytes.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "pool/session_residue.h"
#include "pool/sql_lexer.h"

using namespace lokadb;

namespace {

constexpr Residue kAll = residue::kSettings | residue::kReset | residue::kState;

void require(bool claim) {
  if (!claim) std::abort();
}

const TrackedNames& tracked() {
  static const TrackedNames names({"role_of_mine"});
  return names;
}

// Tokens are parts of the text, in order, and come to an end.
void check_lexer(std::string_view sql) {
  SqlLexer lexer(sql);
  std::size_t at = 0;
  for (Token token = lexer.next(); token.kind != Token::Kind::End; token = lexer.next()) {
    require(token.text.data() >= sql.data() && token.text.data() + token.text.size() <= sql.data() + sql.size());
    require(lexer.position() > at && lexer.position() <= sql.size());
    at = lexer.position();
  }
}

// Command tags tell of these, so that pieces need not.
bool has_word_that_tags_tell(std::string_view sql) {
  bool found = false;
  for (std::size_t i = 0; i + 3 <= sql.size() && !found; ++i) found = iequals(sql.substr(i, 3), "set");
  return found;
}

// As a session looks at what streams (ClientSession::note_piece).
bool is_found_in_pieces(std::string_view sql, std::size_t size) {
  for (std::size_t at = 0; at < sql.size(); at += size) {
    if (residue_of_piece(sql.substr(at, size)) != residue::kNone) return true;
    std::size_t begin = at - std::min(at, kResidueOverlap);
    if (residue_of_piece(sql.substr(begin, at - begin + std::min(size, kResidueOverlap))) != residue::kNone)
      return true;
  }
  return false;
}

void check_pieces(std::string_view sql) {
  if (!has_suspicious_word(sql) || has_word_that_tags_tell(sql)) return;
  for (std::size_t size : {kResidueOverlap, std::size_t{33}, std::size_t{100}, sql.size()})
    require(is_found_in_pieces(sql, size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view sql(reinterpret_cast<const char*>(data), size);
  if (size > 20000) return 0;
  Residue found = residue_of(sql, tracked());
  require((found & ~kAll) == 0);
  require(has_suspicious_word(sql) || found == residue::kNone);
  // Blanks before it change nothing, and a statement behind it takes nothing away.
  require(residue_of(" \n" + std::string(sql), tracked()) == found);
  require((found & ~residue_of(std::string(sql) + "\n;select 1", tracked())) == 0);
  check_lexer(sql);
  check_pieces(sql);
  for (bool is_unread : {false, true}) (void)residue_of_tag(sql.substr(0, 64), is_unread);
  return 0;
}
