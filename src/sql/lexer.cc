#include "sql/lexer.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace lokadb::sql {
namespace {

enum : std::uint8_t { kSpace = 1, kNameStart = 2, kNameRest = 4, kDigit = 8, kOperator = 16, kPunctuation = 32 };

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  auto add = [&classes](std::string_view chars, std::uint8_t what) {
    for (char c : chars) classes[static_cast<std::uint8_t>(c)] |= what;
  };
  add(" \t\n\r\f", kSpace);
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] = kNameStart | kNameRest;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] = kNameStart | kNameRest;
  for (std::size_t c = 0x80; c <= 0xff; ++c) classes[c] = kNameStart | kNameRest;
  add("_", kNameStart | kNameRest);
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kNameRest | kDigit;
  add("$", kNameRest);
  add("~!@#^&|`?+-*/%<>=", kOperator);
  add(",()[].;:+-*/%^<>=", kPunctuation);
  return classes;
}

constexpr auto kClasses = make_classes();

bool is(char c, std::uint8_t what) { return (kClasses[static_cast<std::uint8_t>(c)] & what) != 0; }

// An operator of only these may not end in + or -, so that "a=-1" is what it looks like.
bool allows_final_sign(char c) { return std::string_view("~!@#^&|`?%").find(c) != std::string_view::npos; }

bool fits_32_bits(std::string_view digits) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  constexpr std::string_view kMax = "2147483647";
  return digits.size() < kMax.size() || (digits.size() == kMax.size() && digits <= kMax);
}

}  // namespace

Token Lexer::token(TokenKind kind, std::size_t end) {
  next_ = end;
  return {kind, static_cast<std::uint32_t>(start_), static_cast<std::uint32_t>(end)};
}

Token Lexer::error() {
  next_ = start_;
  return {TokenKind::Error, static_cast<std::uint32_t>(start_), static_cast<std::uint32_t>(text_.size())};
}

Token Lexer::next() {
  start_ = next_;
  while (start_ < text_.size() && is(text_[start_], kSpace)) ++start_;
  if (start_ >= text_.size()) return token(TokenKind::End, text_.size());
  char c = text_[start_];
  if (is(c, kNameStart)) return word();
  if (is(c, kDigit) || (c == '.' && is(at(start_ + 1), kDigit))) return number();
  if (c == '\'') return quoted(start_, has_standard_strings_ ? TokenKind::String : TokenKind::EscapeString);
  if (c == '"') return quoted_name(start_, TokenKind::QuotedName);
  if (c == '$') return after_dollar();
  if (c == '-' && at(start_ + 1) == '-') return line_comment();
  if (c == '/' && at(start_ + 1) == '*') return block_comment();
  if (is(c, kOperator)) return operator_run();
  if (c == '\0') return error();
  std::string_view pair = text_.substr(start_, 2);
  if (pair == "::" || pair == ":=" || pair == "..") return token(TokenKind::Operator, start_ + 2);
  return token(TokenKind::Punctuation, start_ + 1);
}

Token Lexer::word() {
  char first = lower(text_[start_]);
  char second = at(start_ + 1);
  if (second == '\'') {
    if (first == 'e') return quoted(start_ + 1, TokenKind::EscapeString);
    if (first == 'b') return quoted(start_ + 1, TokenKind::Bits);
    if (first == 'x') return quoted(start_ + 1, TokenKind::HexBits);
    if (first == 'n') return token(TokenKind::NationalMark, start_ + 1);
  }
  if (first == 'u' && second == '&') {
    if (at(start_ + 2) == '"') return quoted_name(start_ + 2, TokenKind::UnicodeName);
    // PostgreSQL refuses these where a backslash may escape a quote.
    if (at(start_ + 2) == '\'') return has_standard_strings_ ? quoted(start_ + 2, TokenKind::UnicodeString) : error();
  }
  std::size_t end = start_ + 1;
  while (end < text_.size() && is(text_[end], kNameRest)) ++end;
  return token(TokenKind::Word, end);
}

Token Lexer::number() {
  std::size_t end = start_;
  auto digits = [this, &end] {
    std::size_t before = end;
    while (is(at(end), kDigit)) ++end;
    return end > before;
  };
  digits();
  bool is_integer = true;
  if (at(end) == '.' && !(at(end + 1) == '.' && end > start_)) {  // "1..10" is 1, "..", 10
    is_integer = false;
    ++end;
    digits();
  }
  if (lower(at(end)) == 'e') {
    is_integer = false;
    ++end;
    if (at(end) == '+' || at(end) == '-') ++end;
    if (!digits()) return error();
  }
  if (is(at(end), kNameStart)) return error();
  bool is_small = is_integer && fits_32_bits(text_.substr(start_, end - start_));
  return token(is_small ? TokenKind::Integer : TokenKind::Number, end);
}

Token Lexer::after_dollar() {
  std::size_t end = start_ + 1;
  if (is(at(end), kDigit)) {
    while (is(at(end), kDigit)) ++end;
    return is(at(end), kNameStart) ? error() : token(TokenKind::Parameter, end);
  }
  if (is(at(end), kNameStart))
    while (at(end) != '$' && is(at(end), kNameRest)) ++end;
  if (at(end) != '$') return token(TokenKind::Punctuation, start_ + 1);
  std::string_view delimiter = text_.substr(start_, end + 1 - start_);
  std::size_t close = text_.find(delimiter, end + 1);
  return close == text_.npos ? error() : token(TokenKind::DollarString, close + delimiter.size());
}

Token Lexer::operator_run() {
  std::size_t end = start_ + 1;
  auto starts_comment = [this](std::size_t i) {
    return (text_[i] == '-' && at(i + 1) == '-') || (text_[i] == '/' && at(i + 1) == '*');
  };
  while (end < text_.size() && is(text_[end], kOperator) && !starts_comment(end)) ++end;
  auto is_sign = [this](std::size_t i) { return text_[i] == '+' || text_[i] == '-'; };
  if (end - start_ > 1 && is_sign(end - 1)) {
    std::string_view others = text_.substr(start_, end - 1 - start_);
    if (std::none_of(others.begin(), others.end(), allows_final_sign)) {
      do --end;
      while (end - start_ > 1 && is_sign(end - 1));
    }
  }
  bool stands_alone = end - start_ == 1 && is(text_[start_], kPunctuation);
  return token(stands_alone ? TokenKind::Punctuation : TokenKind::Operator, end);
}

Token Lexer::line_comment() {
  std::size_t end = text_.find_first_of("\n\r", start_);
  return token(TokenKind::Comment, end == text_.npos ? text_.size() : end);
}

Token Lexer::block_comment() {
  std::size_t depth = 0;
  for (std::size_t i = start_; i + 1 < text_.size();) {
    if (text_[i] == '/' && text_[i + 1] == '*') {
      ++depth;
      i += 2;
    } else if (text_[i] == '*' && text_[i + 1] == '/') {
      i += 2;
      if (--depth == 0) return token(TokenKind::Comment, i);
    } else {
      ++i;
    }
  }
  return error();
}

Token Lexer::quoted_name(std::size_t open, TokenKind kind) {
  for (std::size_t i = open + 1; (i = text_.find('"', i)) != text_.npos; i += 2) {
    if (at(i + 1) == '"') continue;
    return i == open + 1 ? error() : token(kind, i + 1);
  }
  return error();
}

// A string goes on in the next quotes if there is a line break in between, and only white space and comments.
Token Lexer::quoted(std::size_t open, TokenKind kind) {
  bool has_escapes = kind == TokenKind::EscapeString;
  bool has_doubled_quotes = kind != TokenKind::Bits && kind != TokenKind::HexBits;
  std::size_t i = open + 1;
  for (;;) {
    i = has_escapes ? text_.find_first_of("'\\", i) : text_.find('\'', i);
    if (i == text_.npos) return error();
    if (text_[i] == '\\' || (has_doubled_quotes && at(i + 1) == '\'')) {
      i += 2;
      continue;
    }
    std::size_t more = continuation(i + 1);
    if (more == text_.npos) return token(kind, i + 1);
    i = more;
  }
}

// Behind the quote that opens the next part, or npos.
std::size_t Lexer::continuation(std::size_t i) const {
  bool has_line_break = false;
  for (; i < text_.size(); ++i) {
    char c = text_[i];
    if (c == '\n' || c == '\r') {
      has_line_break = true;
    } else if (c == '-' && at(i + 1) == '-') {
      i = text_.find_first_of("\n\r", i);
      if (i == text_.npos) return text_.npos;
      has_line_break = true;
    } else if (!is(c, kSpace)) {
      return has_line_break && c == '\'' ? i + 1 : text_.npos;
    }
  }
  return text_.npos;
}

bool is_ascii_safe_encoding(std::string_view name) {
  if (name == "UTF8") return true;  // as nearly all are
  std::string plain;                // PostgreSQL, too, ignores case and everything but letters and digits
  for (char c : name)
    if (is(c, kNameRest) && c != '_' && c != '$') plain += lower(c);
  // Those that a database can be in. What only a client can have (SJIS, BIG5, GBK, UHC, GB18030, JOHAB) is unsafe.
  static constexpr std::string_view kNames[] = {
      "abc",         "alt",         "euccn",       "eucjis2004",  "eucjp",       "euckr",       "euctw",
      "iso88591",    "iso885910",   "iso885913",   "iso885914",   "iso885915",   "iso885916",   "iso88592",
      "iso88593",    "iso88594",    "iso88595",    "iso88596",    "iso88597",    "iso88598",    "iso88599",
      "koi8",        "koi8r",       "koi8u",       "latin1",      "latin10",     "latin2",      "latin3",
      "latin4",      "latin5",      "latin6",      "latin7",      "latin8",      "latin9",      "sqlascii",
      "tcvn",        "tcvn5712",    "unicode",     "utf8",        "vscii",       "win",         "win1250",
      "win1251",     "win1252",     "win1253",     "win1254",     "win1255",     "win1256",     "win1257",
      "win1258",     "win866",      "win874",      "windows1250", "windows1251", "windows1252", "windows1253",
      "windows1254", "windows1255", "windows1256", "windows1257", "windows1258", "windows866",  "windows874",
  };
  return std::find(std::begin(kNames), std::end(kNames), plain) != std::end(kNames);
}

bool is_readable(std::string_view text, std::string_view encoding) {
  auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return is_ascii_safe_encoding(encoding) || std::all_of(text.begin(), text.end(), is_ascii);
}

}  // namespace lokadb::sql
