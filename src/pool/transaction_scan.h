// Looks for statements behind the end of a transaction, in the text of a Query that is too large to be kept: it streams
// through in pieces. What stands in front of such a Query for its first transaction does not hold for what follows.
// Source: PostgreSQL manual, "Lexical Structure".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lokadb {

class TransactionScan {
 public:
  // client_encoding, and whether standard_conforming_strings is on.
  TransactionScan(std::string_view encoding, bool has_standard_strings);
  // The next piece of the text. True, from then on: there is something. Errs on that side.
  bool feed(std::string_view piece);

 private:
  enum class State : std::uint8_t { Code, Tag, Dollar, String, EscapeString, Name, LineComment, BlockComment };
  enum class Trails : std::uint8_t { None, All, AllButKana };  // a character that is not ASCII has a second byte

  void take(char c);
  void take_code(char c);
  void take_tag(char c);
  void take_in_block_comment(char c);
  void open_string();
  void token();
  void end_word();
  void end_statement();
  bool is_end() const;

  const Trails trails_;
  const bool has_standard_strings_;
  State state_ = State::Code;
  bool is_trail_ = false;         // the next byte is the second one of a character
  bool is_escaped_ = false;       // in an EscapeString: the next byte is
  bool goes_on_escaped_ = false;  // a string that follows belongs to the EscapeString before
  char pending_ = 0;              // '-' or '/', which may begin a comment; in one, '*' or '/'
  int depth_ = 0;                 // of block comments
  std::string close_;             // what closes the Dollar string; while in Tag: as far as it has come
  std::size_t matched_ = 0;       // of close_
  std::string word_;              // that has not ended, its first letters in lower case
  static constexpr std::size_t kMaxWord = 16;
  std::string words_[3];  // of the statement, the first ones
  std::size_t word_count_ = 0;
  bool is_behind_end_ = false, has_found_ = false;
};

}  // namespace lokadb
