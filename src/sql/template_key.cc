#include "sql/template_key.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace lokadb::sql {
namespace {

// Counts, for each open parenthesis, the tokens since the last comma or semicolon at that level. Whatever a parser
// nests, it takes a token to do so.
class DepthBound {
 public:
  void count(char c) {
    ++tokens_;
    if (c == '(' || c == '[') {
      outer_ += tokens_;
      tokens_ = 0;
      if (open_ < kLevels) at_open_[open_++] = outer_;
    } else if (c == ')' || c == ']') {
      close();
    } else if (c == ',' || c == ';') {
      tokens_ = 0;
    }
    most_ = std::max(most_, outer_ + tokens_);
  }
  std::uint32_t most() const { return most_; }

 private:
  void close() {
    if (open_ == 0 || outer_ > at_open_[open_ - 1]) return;  // nested beyond our levels: stay deep
    --open_;
    std::uint32_t before = open_ ? at_open_[open_ - 1] : 0;
    tokens_ = at_open_[open_] - before + 1;
    outer_ = before;
  }

  static constexpr std::size_t kLevels = 256;
  std::uint32_t at_open_[kLevels];
  std::size_t open_ = 0;
  std::uint32_t outer_ = 0, tokens_ = 0, most_ = 0;
};

char mark_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::Integer:
      return 'i';
    case TokenKind::Number:
      return 'n';
    case TokenKind::Bits:
      return 'b';
    case TokenKind::HexBits:
      return 'x';
    case TokenKind::UnicodeString:
      return 'u';
    case TokenKind::Comment:
      return '-';
    default:
      return 's';
  }
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* from, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, size);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes) {
  constexpr std::uint64_t kA = 0x9e3779b97f4a7c15, kB = 0xd6e8feb86659fd93;  // odd, bits well spread
  std::uint64_t hash = kA ^ bytes.size();
  while (bytes.size() >= 16) {
    hash = mix(load(bytes.data(), 8) ^ hash, load(bytes.data() + 8, 8) ^ kB);
    bytes.remove_prefix(16);
  }
  std::size_t first = std::min<std::size_t>(bytes.size(), 8);
  std::uint64_t a = load(bytes.data(), first);
  std::uint64_t b = load(bytes.data() + first, bytes.size() - first);
  return mix(mix(a ^ hash, b ^ kB), kA);
}

void lift(std::string_view text, bool has_standard_strings, Lifted& lifted) {
  lifted.key.clear();
  lifted.literals.clear();
  lifted.comments.clear();
  lifted.is_exact = lifted.is_error = false;
  // A mark takes two bytes, more than the literal 1.
  lifted.key.resize(2 * text.size() + 2);
  char* to = lifted.key.data();
  std::size_t copied = 0;
  DepthBound depth;
  Lexer lexer(text, has_standard_strings);
  Token token = lexer.next();
  for (; token.kind > TokenKind::Error; token = lexer.next()) {
    bool is_comment = token.kind == TokenKind::Comment;
    if (!is_comment) depth.count(token.end - token.start == 1 ? text[token.start] : 'x');
    if (!is_comment && !is_literal(token.kind)) {
      if (token.kind == TokenKind::Word && token.end - token.start == 7 &&
          iequals(text.substr(token.start, 7), "uescape"))
        lifted.is_exact = true;
      continue;
    }
    (is_comment ? lifted.comments : lifted.literals).push_back(token);
    std::memcpy(to, text.data() + copied, token.start - copied);
    to += token.start - copied;
    *to++ = '\0';
    *to++ = mark_of(token.kind);
    copied = token.end;
  }
  lifted.depth_bound = depth.most();
  lifted.is_error = token.kind == TokenKind::Error;
  std::memcpy(to, text.data() + copied, text.size() - copied);
  to += text.size() - copied;
  lifted.key.resize(static_cast<std::size_t>(to - lifted.key.data()));
  if (lifted.is_error) lifted.key.clear();
  if (lifted.is_exact && !lifted.is_error) {
    lifted.key.assign(has_standard_strings ? "\0e" : "\0E", 2);  // no template begins with either
    lifted.key.append(text);
  }
  lifted.hash = hash_bytes(lifted.key);
}

}  // namespace lokadb::sql
