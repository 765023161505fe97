// Splits SQL text into the tokens of PostgreSQL's lexer (manual, "Lexical Structure"), as far as it takes to tell names
// from strings and comments. Views into the text; allocates nothing.
#pragma once

#include <cstddef>
#include <string_view>

namespace lokadb {

bool starts_name(char c);  // letters, underscore, and whatever is not ASCII
bool goes_on_name(char c);

struct Token {
  enum class Kind : unsigned char {
    End,
    Word,    // keyword or name without quotes, as written
    Quoted,  // name in double quotes; text is what stands between them
    String,  // constant of any form; text is what stands between the quotes
    Other,   // anything else: one character, or a number or parameter
  };
  Kind kind = Kind::End;
  std::string_view text;
  bool is_plain = true;  // the text of a String or Quoted is its value: no escapes, no doubled quotes

  // A keyword or a name without quotes; `word` in lower case.
  bool is(std::string_view word) const;
  // A name, in whichever form it was written; `name` in lower case.
  bool names(std::string_view name) const;
  bool is_symbol(char c) const { return kind == Kind::Other && text.size() == 1 && text.front() == c; }
  bool is_name() const { return kind == Kind::Word || kind == Kind::Quoted; }
};

class SqlLexer {
 public:
  explicit SqlLexer(std::string_view sql) : sql_(sql) {}
  Token next();
  // Comments, too.
  void skip_blanks();
  // Of the first byte behind the token that came last.
  std::size_t position() const { return at_; }
  // The text may have another meaning than the tokens say: something does not end, or there is a backslash before a
  // quote, which is an escape or not, as standard_conforming_strings is.
  bool is_doubtful() const { return is_doubtful_; }

 private:
  void skip_block_comment();
  Token take_word();
  Token take_quoted(char quote, bool has_escapes);
  Token take_dollar_string();
  char at(std::size_t i) const { return i < sql_.size() ? sql_[i] : '\0'; }

  std::string_view sql_;
  std::size_t at_ = 0;
  bool is_doubtful_ = false;
};

// What stands behind blanks and comments.
inline std::string_view without_blanks(std::string_view sql) {
  SqlLexer lexer(sql);
  lexer.skip_blanks();
  return sql.substr(lexer.position());
}

}  // namespace lokadb
