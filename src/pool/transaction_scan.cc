#include "pool/transaction_scan.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lokadb {

namespace {

bool is_high(char c) { return (c & 0x80) != 0; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_high(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Names of an encoding are compared without case, by their letters and digits.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (char c : name)
    if (is_digit(c) || (is_letter(c) && c != '_')) plain += lower(c);
  return plain;
}

// Those that only clients can have: the second byte of a character may be a backslash.
constexpr std::string_view kJapanese[] = {"sjis", "shiftjis", "shiftjis2004", "mskanji", "win932", "windows932"};
constexpr std::string_view kOthers[] = {"big5", "win950", "windows950", "gbk",     "win936", "windows936",
                                        "uhc",  "win949", "windows949", "gb18030", "johab"};

template <class List>
bool is_one_of(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

TransactionScan::TransactionScan(std::string_view encoding, bool has_standard_strings)
    : trails_(is_one_of(kJapanese, plain_name(encoding)) ? Trails::AllButKana
              : is_one_of(kOthers, plain_name(encoding)) ? Trails::All
                                                         : Trails::None),
      has_standard_strings_(has_standard_strings) {}

bool TransactionScan::feed(std::string_view piece) {
  for (char c : piece) {
    if (has_found_) break;
    if (is_trail_) {
      is_trail_ = false;
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    bool is_kana = byte >= 0xa1 && byte <= 0xdf;
    is_trail_ = is_high(c) && trails_ != Trails::None && !(trails_ == Trails::AllButKana && is_kana);
    take(c);
  }
  return has_found_;
}

void TransactionScan::take(char c) {
  switch (state_) {
    case State::Code:
      return take_code(c);
    case State::Tag:
      return take_tag(c);
    case State::Dollar:
      matched_ = c == close_[matched_] ? matched_ + 1 : (c == '$' ? 1 : 0);
      if (matched_ == close_.size()) state_ = State::Code;
      return;
    case State::EscapeString:
      if (std::exchange(is_escaped_, false)) return;
      is_escaped_ = c == '\\';
      [[fallthrough]];
    case State::String:
      if (c == '\'') state_ = State::Code;  // one that is doubled opens the next
      return;
    case State::Name:
      if (c == '"') state_ = State::Code;
      return;
    case State::LineComment:
      if (c == '\n' || c == '\r') state_ = State::Code;
      return;
    case State::BlockComment:
      return take_in_block_comment(c);
  }
}

void TransactionScan::take_code(char c) {
  if (char before = std::exchange(pending_, '\0'); before != '\0') {
    if (before == '-' && c == '-') {
      state_ = State::LineComment;
      return;
    }
    if (before == '/' && c == '*') {
      state_ = State::BlockComment;
      depth_ = 1;
      return;
    }
    token();
  }
  if (is_letter(c) || (!word_.empty() && (is_digit(c) || c == '$'))) {
    token();
    if (word_.size() < kMaxWord) word_ += lower(c);
    return;
  }
  if (c == '\'') return open_string();
  end_word();
  if (is_blank(c)) return;
  if (c == ';') return end_statement();
  if (c == '-' || c == '/') {
    pending_ = c;
    return;
  }
  token();
  if (c == '"') state_ = State::Name;
  if (c == '$') {
    state_ = State::Tag;
    close_.assign(1, '$');
  }
}

void TransactionScan::open_string() {
  bool has_escapes = !has_standard_strings_ || word_ == "e" || goes_on_escaped_;
  end_word();
  token();
  state_ = has_escapes ? State::EscapeString : State::String;
  goes_on_escaped_ = has_escapes;
}

// "$tag$", or a parameter, or a '$' that means nothing.
void TransactionScan::take_tag(char c) {
  bool may_go_on = is_letter(c) || (is_digit(c) && close_.size() > 1);
  if (may_go_on || c == '$') {
    close_ += c;
    if (c == '$') {
      state_ = State::Dollar;
      matched_ = 0;
    }
    return;
  }
  state_ = State::Code;
  take_code(c);
}

void TransactionScan::take_in_block_comment(char c) {
  char before = std::exchange(pending_, c);
  if (before == '*' && c == '/')
    --depth_;
  else if (before == '/' && c == '*')
    ++depth_;
  else
    return;
  pending_ = '\0';
  if (depth_ == 0) state_ = State::Code;
}

void TransactionScan::token() {
  has_found_ = has_found_ || is_behind_end_;
  goes_on_escaped_ = false;
}

void TransactionScan::end_word() {
  if (word_.empty()) return;
  if (word_count_ < std::size(words_)) words_[word_count_++] = word_;
  word_.clear();
}

void TransactionScan::end_statement() {
  is_behind_end_ = is_behind_end_ || is_end();
  for (std::string& word : words_) word.clear();
  word_count_ = 0;
  goes_on_escaped_ = false;
}

bool TransactionScan::is_end() const {
  constexpr std::string_view kEnds[] = {"commit", "end", "rollback", "abort"};
  if (word_count_ == 0) return false;
  if (words_[0] == "prepare") return word_count_ > 1 && words_[1] == "transaction";
  bool is_to_savepoint = is_one_of(words_, "to") && words_[0] == "rollback";
  return is_one_of(kEnds, words_[0]) && !is_to_savepoint;
}

}  // namespace lokadb
