
#include "route/literals.h"

namespace lokadb::route {

namespace {

using sql::TokenKind;

// 'it''s' -> it's. False: in several pieces ('a' newline 'b').
bool unquote(std::string_view quoted, std::string& out) {
  if (quoted.size() < 2 || quoted.front() != '\'' || quoted.back() != '\'') return false;
  quoted = quoted.substr(1, quoted.size() - 2);
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '\'' && (++i == quoted.size() || quoted[i] != '\'')) return false;
    out += quoted[i];
  }
  return true;
}

}  // namespace

LiteralList::LiteralList(std::string_view text, bool has_standard_strings) {
  sql::Lifted lifted;
  sql::lift(text, has_standard_strings, lifted);
  read(text, lifted);
}

void LiteralList::read(std::string_view text, const sql::Lifted& lifted) {
  literals_.clear();
  decoded_.clear();
  for (const sql::Token& token : lifted.literals) add(text, token);
}

void LiteralList::add(std::string_view text, const sql::Token& token) {
  std::string_view as_written = text.substr(token.start, token.end - token.start);
  Literal literal;
  switch (token.kind) {
    case TokenKind::Integer:
    case TokenKind::Number:
      literal = {Literal::Kind::Number, as_written};
      break;
    case TokenKind::EscapeString:
      if (as_written.find('\\') != as_written.npos) break;  // escapes are the server's to read
      if (as_written.front() != '\'') as_written.remove_prefix(1);
      [[fallthrough]];
    case TokenKind::String: {
      std::string_view inside = as_written.size() < 2 ? as_written : as_written.substr(1, as_written.size() - 2);
      if (inside.find('\'') == inside.npos && as_written.size() >= 2) {
        literal = {Literal::Kind::String, inside};
        break;
      }
      auto decoded = std::make_unique<std::string>();
      if (!unquote(as_written, *decoded)) break;
      literal = {Literal::Kind::String, *decoded};
      decoded_.push_back(std::move(decoded));
      break;
    }
    case TokenKind::DollarString: {
      std::size_t tag = as_written.find('$', 1) + 1;
      literal = {Literal::Kind::String, as_written.substr(tag, as_written.size() - 2 * tag)};
      break;
    }
    default:
      break;
  }
  literals_.push_back(literal);
}

}  // namespace lokadb::route
