#include "sql/literal.h"

#include <optional>

#include "base/text.h"

namespace lokadb::sql {
namespace {

std::optional<unsigned> digit_of(char c, unsigned base) {
  unsigned value = 99;
  if (c >= '0' && c <= '9') value = static_cast<unsigned>(c - '0');
  if (lower(c) >= 'a' && lower(c) <= 'f') value = static_cast<unsigned>(lower(c) - 'a') + 10;
  return value < base ? std::optional(value) : std::nullopt;
}

// Reads up to `most` digits at `i` and goes behind them; nothing if there are fewer than `least`.
std::optional<unsigned> read_digits(std::string_view s, std::size_t& i, unsigned base, int least, int most) {
  unsigned value = 0;
  int count = 0;
  for (; count < most && i < s.size(); ++count, ++i) {
    auto digit = digit_of(s[i], base);
    if (!digit) break;
    value = value * base + *digit;
  }
  return count >= least ? std::optional(value) : std::nullopt;
}

bool append_ascii(std::optional<unsigned> code, std::string& out) {
  if (!code || *code == 0 || *code > 0x7f) return false;
  out += static_cast<char>(*code);
  return true;
}

// `i` is behind a backslash of an E'' string.
bool append_escape(std::string_view s, std::size_t& i, std::string& out) {
  char c = s[i];
  if (c >= '0' && c <= '7') return append_ascii(read_digits(s, i, 8, 1, 3), out);
  ++i;
  switch (c) {
    case 'b':
      out += '\b';
      return true;
    case 'f':
      out += '\f';
      return true;
    case 'n':
      out += '\n';
      return true;
    case 'r':
      out += '\r';
      return true;
    case 't':
      out += '\t';
      return true;
    case 'x':
      if (i < s.size() && digit_of(s[i], 16)) return append_ascii(read_digits(s, i, 16, 1, 2), out);
      out += c;
      return true;
    case 'u':
      return append_ascii(read_digits(s, i, 16, 4, 4), out);
    case 'U':
      return append_ascii(read_digits(s, i, 16, 8, 8), out);
    default:
      out += c;
      return true;
  }
}

// `i` is behind a backslash of a U&'' string.
bool append_unicode(std::string_view s, std::size_t& i, std::string& out) {
  if (i < s.size() && s[i] == '\\') {
    ++i;
    out += '\\';
    return true;
  }
  int digits = 4;
  if (i < s.size() && s[i] == '+') {
    ++i;
    digits = 6;
  }
  return append_ascii(read_digits(s, i, 16, digits, digits), out);
}

}  // namespace

bool decode_literal(std::string_view text, const Token& token, std::string& out) {
  std::string_view s = text.substr(token.start, token.end - token.start);
  if (token.kind == TokenKind::Integer || token.kind == TokenKind::Number) {
    out.append(s);
    return true;
  }
  if (token.kind == TokenKind::DollarString) {
    std::size_t delimiter = s.find('$', 1) + 1;
    out.append(s.substr(delimiter, s.size() - 2 * delimiter));
    return true;
  }
  bool has_escapes = token.kind == TokenKind::EscapeString, is_unicode = token.kind == TokenKind::UnicodeString;
  std::size_t i = s.find('\'') + 1;
  while (i < s.size()) {
    char c = s[i++];
    if (c == '\\' && (has_escapes || is_unicode)) {
      if (i >= s.size() || !(has_escapes ? append_escape(s, i, out) : append_unicode(s, i, out))) return false;
    } else if (c != '\'') {
      out += c;
    } else if (i < s.size() && s[i] == '\'') {
      out += c;
      ++i;
    } else if (i < s.size()) {  // the string goes on in another line
      while (s[i] != '\'') i = s[i] == '-' ? s.find_first_of("\n\r", i) : i + 1;
      ++i;
    }
  }
  return true;
}

}  // namespace lokadb::sql
