#include "pool/sql_lexer.h"

#include <algorithm>

#include "base/text.h"

namespace lokadb {

bool starts_name(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || (c & 0x80) != 0; }
bool goes_on_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '$'; }

bool Token::is(std::string_view word) const { return kind == Kind::Word && iequals(text, word); }
bool Token::names(std::string_view name) const { return is(name) || (kind == Kind::Quoted && text == name); }

Token SqlLexer::next() {
  skip_blanks();
  if (at_ >= sql_.size()) return {};
  char c = sql_[at_];
  if (starts_name(c)) return take_word();
  if (c == '\'' || c == '"') return take_quoted(c, false);
  if (c == '$' && !(at(at_ + 1) >= '0' && at(at_ + 1) <= '9')) return take_dollar_string();
  std::size_t begin = at_++;
  bool is_number = (c >= '0' && c <= '9') || c == '$';
  while (is_number && at_ < sql_.size() && (goes_on_name(sql_[at_]) || sql_[at_] == '.')) ++at_;
  return {Token::Kind::Other, sql_.substr(begin, at_ - begin)};
}

void SqlLexer::skip_blanks() {
  while (at_ < sql_.size()) {
    if (is_space(sql_[at_])) {
      ++at_;
    } else if (sql_[at_] == '-' && at(at_ + 1) == '-') {
      while (at_ < sql_.size() && sql_[at_] != '\n' && sql_[at_] != '\r') ++at_;
    } else if (sql_[at_] == '/' && at(at_ + 1) == '*') {
      skip_block_comment();
    } else {
      return;
    }
  }
}

void SqlLexer::skip_block_comment() {
  int depth = 0;
  while (at_ < sql_.size()) {
    if (sql_[at_] == '/' && at(at_ + 1) == '*') {
      ++depth;
      at_ += 2;
    } else if (sql_[at_] == '*' && at(at_ + 1) == '/') {
      at_ += 2;
      if (--depth == 0) return;
    } else {
      ++at_;
    }
  }
  is_doubtful_ = true;
}

Token SqlLexer::take_word() {
  std::size_t begin = at_;
  while (at_ < sql_.size() && goes_on_name(sql_[at_])) ++at_;
  std::string_view word = sql_.substr(begin, at_ - begin);
  // The letters that may stand before a quote: E'', B'', X'', N'', U&'', U&"".
  char c = at(at_);
  if (word.size() == 1 && c == '\'' && std::string_view("ebxn").find(lower(word[0])) != std::string_view::npos)
    return take_quoted('\'', lower(word[0]) == 'e');
  if (word.size() == 1 && lower(word[0]) == 'u' && c == '&' && (at(at_ + 1) == '\'' || at(at_ + 1) == '"')) {
    ++at_;
    Token token = take_quoted(sql_[at_], false);
    token.is_plain = false;
    return token;
  }
  return {Token::Kind::Word, word};
}

Token SqlLexer::take_quoted(char quote, bool has_escapes) {
  std::size_t begin = ++at_;
  Token token{quote == '"' ? Token::Kind::Quoted : Token::Kind::String, {}, !has_escapes};
  for (; at_ < sql_.size(); ++at_) {
    if (sql_[at_] == '\\' && quote == '\'') {
      if (has_escapes)
        ++at_;
      else if (at(at_ + 1) == '\'')
        is_doubtful_ = true;
    } else if (sql_[at_] == quote && at(at_ + 1) == quote) {
      token.is_plain = false;
      ++at_;
    } else if (sql_[at_] == quote) {
      token.text = sql_.substr(begin, at_ - begin);
      ++at_;
      return token;
    }
  }
  at_ = sql_.size();
  is_doubtful_ = true;
  token.text = sql_.substr(std::min(begin, sql_.size()));
  return token;
}

// $$ ... $$ or $tag$ ... $tag$; a dollar that begins neither is a character like another.
Token SqlLexer::take_dollar_string() {
  std::size_t end = at_ + 1;
  while (end < sql_.size() && goes_on_name(sql_[end]) && sql_[end] != '$') ++end;
  if (at(end) != '$') return {Token::Kind::Other, sql_.substr(at_++, 1)};
  std::string_view tag = sql_.substr(at_, end + 1 - at_);
  std::size_t begin = end + 1;
  std::size_t close = sql_.find(tag, begin);
  if (close == std::string_view::npos) {
    is_doubtful_ = true;
    at_ = sql_.size();
    return {Token::Kind::String, sql_.substr(begin)};
  }
  at_ = close + tag.size();
  return {Token::Kind::String, sql_.substr(begin, close - begin)};
}

}  // namespace lokadb
