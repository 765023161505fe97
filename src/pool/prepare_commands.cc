#include "pool/prepare_commands.h"

#include "base/text.h"
#include "pool/sql_lexer.h"

namespace lokadb {

namespace {

constexpr std::size_t kMaxName = 63;

// The token as a name that stands at the end of what was read.
std::optional<NamedStatement> as_name(const SqlLexer& lexer, std::string_view sql, const Token& token) {
  if (!token.is_name() || token.text.empty()) return std::nullopt;
  NamedStatement named;
  named.begin = static_cast<std::size_t>(token.text.data() - sql.data());
  named.end = lexer.position();
  if (token.kind == Token::Kind::Word) {
    named.name = lower(token.text);
  } else {
    --named.begin;
    if (sql[named.begin] != '"' || (named.begin > 0 && sql[named.begin - 1] == '&')) return std::nullopt;
    for (std::size_t i = 0; i < token.text.size(); ++i) {
      named.name += token.text[i];
      if (token.text[i] == '"') ++i;
    }
  }
  if (named.name.size() > kMaxName) return std::nullopt;
  return named;
}

}  // namespace

std::optional<NamedStatement> prepared_by(std::string_view sql) {
  SqlLexer lexer(sql);
  if (!lexer.next().is("prepare")) return std::nullopt;
  Token token = lexer.next();
  auto named = as_name(lexer, sql, token);
  token = lexer.next();
  if (!named || (!token.is("as") && !token.is_symbol('('))) return std::nullopt;
  bool is_over = false;
  for (token = lexer.next(); token.kind != Token::Kind::End; token = lexer.next()) {
    if (is_over) return std::nullopt;
    is_over = token.is_symbol(';');
  }
  return lexer.is_doubtful() ? std::nullopt : named;
}

std::string_view rest_of_prepare(std::string_view sql, const NamedStatement& made) {
  std::string_view rest = sql.substr(made.end);
  SqlLexer lexer(rest);
  std::size_t end = 0;
  for (Token token = lexer.next(); token.kind != Token::Kind::End && !token.is_symbol(';'); token = lexer.next())
    end = lexer.position();
  return rest.substr(0, end);
}

std::optional<NamedStatement> executed_by(std::string_view sql) {
  SqlLexer lexer(sql);
  Token token = lexer.next();
  if (token.is("explain"))
    while (!token.is("execute") && !token.is_symbol(';') && token.kind != Token::Kind::End) token = lexer.next();
  if (!token.is("execute")) return std::nullopt;
  token = lexer.next();
  return as_name(lexer, sql, token);
}

std::optional<std::string> deallocated_name(std::string_view sql) {
  SqlLexer lexer(sql);
  if (!lexer.next().is("deallocate")) return std::nullopt;
  Token first = lexer.next();
  auto named = as_name(lexer, sql, first);
  Token next = lexer.next();
  if (first.is("prepare") && next.is_name()) {
    first = next;
    named = as_name(lexer, sql, first);
    next = lexer.next();
  }
  if (next.is_symbol(';')) next = lexer.next();
  if (!named || first.is("all") || next.kind != Token::Kind::End || lexer.is_doubtful()) return std::nullopt;
  return std::move(named->name);
}

}  // namespace lokadb
