// libpg_query's scanner as the judge of ours, and texts with other literals in the same places. For the fuzz target and
// the unit tests.
#pragma once

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

#include <string>
#include <string_view>
#include <vector>

#include "sql/lexer.h"
#include "sql/template_key.h"

namespace lokadb::sql {

struct Judgement {
  bool is_error = false;
  struct Seen {
    std::uint32_t start, end;
    int kind;
  };
  std::vector<Seen> tokens;
};

inline Judgement judge(const std::string& text) {
  Judgement judgement;
  PgQueryScanResult result = pg_query_scan(text.c_str());
  if (result.error) {
    judgement.is_error = true;
  } else {
    auto* scan = pg_query__scan_result__unpack(nullptr, result.pbuf.len,
                                               reinterpret_cast<const std::uint8_t*>(result.pbuf.data));
    for (std::size_t i = 0; scan && i < scan->n_tokens; ++i)
      judgement.tokens.push_back({static_cast<std::uint32_t>(scan->tokens[i]->start),
                                  static_cast<std::uint32_t>(scan->tokens[i]->end), scan->tokens[i]->token});
    judgement.is_error = !scan;
    if (scan) pg_query__scan_result__free_unpacked(scan, nullptr);
  }
  pg_query_free_scan_result(result);
  return judgement;
}

inline bool is_kind(TokenKind ours, int theirs) {
  switch (ours) {
    case TokenKind::Comment:
      return theirs == PG_QUERY__TOKEN__SQL_COMMENT || theirs == PG_QUERY__TOKEN__C_COMMENT;
    case TokenKind::QuotedName:
      return theirs == PG_QUERY__TOKEN__IDENT;
    case TokenKind::UnicodeName:
      return theirs == PG_QUERY__TOKEN__UIDENT;
    case TokenKind::NationalMark:
      return theirs == PG_QUERY__TOKEN__NCHAR;
    case TokenKind::String:
    case TokenKind::EscapeString:
    case TokenKind::DollarString:
      return theirs == PG_QUERY__TOKEN__SCONST;
    case TokenKind::UnicodeString:
      return theirs == PG_QUERY__TOKEN__USCONST;
    case TokenKind::Bits:
      return theirs == PG_QUERY__TOKEN__BCONST;
    case TokenKind::HexBits:
      return theirs == PG_QUERY__TOKEN__XCONST;
    case TokenKind::Integer:
      return theirs == PG_QUERY__TOKEN__ICONST;
    case TokenKind::Number:
      return theirs == PG_QUERY__TOKEN__FCONST;
    case TokenKind::Parameter:
      return theirs == PG_QUERY__TOKEN__PARAM;
    case TokenKind::Operator:
      return theirs >= PG_QUERY__TOKEN__Op && theirs <= PG_QUERY__TOKEN__NOT_EQUALS;
    case TokenKind::Punctuation:
      return theirs < 256;
    case TokenKind::Word:
      return theirs == PG_QUERY__TOKEN__IDENT || theirs > PG_QUERY__TOKEN__C_COMMENT;
    default:
      return false;
  }
}

// "" if our lexer cuts `text` as PostgreSQL's scanner does, else what differs. Where PostgreSQL refuses a text (it
// looks into literals, too) ours may do as it likes.
inline std::string disagreement(const std::string& text) {
  Judgement theirs = judge(text);
  if (theirs.is_error) return {};
  Lexer lexer(text);
  std::size_t i = 0;
  for (Token token = lexer.next(); token.kind != TokenKind::End; token = lexer.next()) {
    std::string at = " at " + std::to_string(token.start);
    if (token.kind == TokenKind::Error) return "error" + at;
    if (i == theirs.tokens.size()) return "one token too many" + at;
    Judgement::Seen seen = theirs.tokens[i++];
    if (seen.start != token.start) return "they begin" + at + " at " + std::to_string(seen.start);
    if (!is_kind(token.kind, seen.kind)) return "they have kind " + std::to_string(seen.kind) + at;
    // libpg_query hands out a comment between the parts of a string as a token, which its parser then refuses.
    while (is_literal(token.kind) && i < theirs.tokens.size() && theirs.tokens[i].start < token.end)
      seen = theirs.tokens[i++];
    // And it does not know where names and strings with U& end.
    bool has_end = token.kind != TokenKind::UnicodeName && token.kind != TokenKind::UnicodeString && seen.kind < 1000;
    if (has_end && token.kind != TokenKind::NationalMark && seen.end != token.end)
      return "they end" + at + " at " + std::to_string(seen.end);
  }
  return i == theirs.tokens.size() ? std::string() : "tokens are missing";
}

// The text with other literals and comments, of the same kinds.
inline std::string with_other_literals(std::string_view text, const Lifted& lifted) {
  std::vector<Token> pieces = lifted.literals;
  pieces.insert(pieces.end(), lifted.comments.begin(), lifted.comments.end());
  std::string changed;
  std::size_t done = 0;
  for (bool is_done = false; !is_done;) {
    const Token* next = nullptr;
    for (const Token& piece : pieces)
      if (piece.start >= done && (!next || piece.start < next->start)) next = &piece;
    if (!next) {
      is_done = true;
      continue;
    }
    changed.append(text.substr(done, next->start - done));
    std::string_view old = text.substr(next->start, next->end - next->start);
    switch (next->kind) {
      case TokenKind::Integer:
        changed += old == "7" ? "4711" : "7";
        break;
      case TokenKind::Number:
        changed += "0.25";
        break;
      case TokenKind::Bits:
        changed += "B'0110'";
        break;
      case TokenKind::HexBits:
        changed += "X'ab'";
        break;
      case TokenKind::UnicodeString:
        changed += "U&'other'";
        break;
      case TokenKind::Comment:
        changed += old.starts_with("--") ? "-- other" : "/* other */";
        break;
      default:
        changed += "'some other; text'";
    }
    done = next->end;
  }
  return changed.append(text.substr(done));
}

}  // namespace lokadb::sql
