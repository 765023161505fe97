// Cuts SQL text into tokens exactly where PostgreSQL's scanner does (version 15; what later versions added, such as
// 0x1f and 1_000, is an error here as there). Knows no keywords and decodes nothing; see literal.h for that.
//
// The text must be in an encoding whose multibyte characters have no ASCII bytes: ask is_ascii_safe_encoding() first.
// Borrows the text; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lokadb::sql {

enum class TokenKind : std::uint8_t {
  End,
  Error,          // unterminated, junk after a number ...: PostgreSQL would refuse the text
  Comment,        // both kinds
  Word,           // identifier or keyword
  QuotedName,     // "name"
  UnicodeName,    // U&"name"
  NationalMark,   // the N of N'text'; the string is the next token
  String,         // 'text'
  EscapeString,   // E'text', and 'text' without standard_conforming_strings
  UnicodeString,  // U&'text'
  DollarString,   // $tag$text$tag$
  Bits,           // B'101'
  HexBits,        // X'1f'
  Integer,        // fits 32 bits
  Number,         // any other number
  Parameter,      // $1
  Operator,       // more than one character, or one that is no punctuation by itself
  Punctuation,    // one character: , ( ) [ ] . ; : + - * / % ^ < > = and whatever else stands alone
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::uint32_t start = 0;
  std::uint32_t end = 0;
};

constexpr bool is_literal(TokenKind kind) { return kind >= TokenKind::String && kind <= TokenKind::Number; }

class Lexer {
 public:
  // `has_standard_strings`: the session's standard_conforming_strings.
  explicit Lexer(std::string_view text, bool has_standard_strings = true)
      : text_(text), has_standard_strings_(has_standard_strings) {}

  // Skips white space. After End or Error comes the same again.
  Token next();

 private:
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  Token token(TokenKind kind, std::size_t end);
  Token error();
  Token word();
  Token number();
  Token after_dollar();
  Token operator_run();
  Token line_comment();
  Token block_comment();
  Token quoted(std::size_t open, TokenKind kind);
  Token quoted_name(std::size_t open, TokenKind kind);
  std::size_t continuation(std::size_t after_quote) const;

  std::string_view text_;
  bool has_standard_strings_;
  std::size_t start_ = 0;  // of the token at hand
  std::size_t next_ = 0;
};

// client_encoding, as the server reports it or as a client may write it.
bool is_ascii_safe_encoding(std::string_view name);
// Of a text in that encoding: in others a byte of a character may look like a letter or quote, but plain ASCII is
// ASCII.
bool is_readable(std::string_view text, std::string_view encoding);

}  // namespace lokadb::sql
