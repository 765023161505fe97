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
  lifted.literals.clear();
  lifted.comments.clear();
  lifted.is_exact = lifted.is_error = false;
  // A mark takes two bytes, the literal 1 only one.
  if (lifted.buffer.size() < 2 * text.size() + 2) lifted.buffer.resize(2 * text.size() + 2);
  char* to = lifted.buffer.data();
  std::size_t copied = 0;
  auto copy_up_to = [&to, &copied, text](std::size_t end) {
    std::memcpy(to, text.data() + copied, end - copied);
    to += end - copied;
  };
  DepthBound depth;
  Lexer lexer(text, has_standard_strings);
  Token token = lexer.next();
  for (; token.kind > TokenKind::Error; token = lexer.next()) {
    bool is_comment = token.kind == TokenKind::Comment;
    std::size_t length = token.end - token.start;
    if (!is_comment) depth.count(length == 1 ? text[token.start] : 'x');
    if (!is_comment && !is_literal(token.kind)) {
      if (token.kind == TokenKind::Word && length == 7 && iequals(text.substr(token.start, 7), "uescape"))
        lifted.is_exact = true;
      continue;
    }
    (is_comment ? lifted.comments : lifted.literals).push_back(token);
    copy_up_to(token.start);
    *to++ = '\0';
    *to++ = mark_of(token.kind);
    copied = token.end;
  }
  copy_up_to(text.size());
  lifted.depth_bound = depth.most();
  lifted.is_error = token.kind == TokenKind::Error;
  if (lifted.is_error || lifted.is_exact) return make_exact_key(text, has_standard_strings, lifted);
  lifted.key = {lifted.buffer.data(), static_cast<std::size_t>(to - lifted.buffer.data())};
  lifted.hash = hash_bytes(lifted.key);
}

void make_exact_key(std::string_view text, bool has_standard_strings, Lifted& lifted) {
  if (lifted.buffer.size() < text.size() + 2) lifted.buffer.resize(text.size() + 2);
  lifted.buffer[0] = '\0';
  lifted.buffer[1] = has_standard_strings ? 'e' : 'E';
  std::memcpy(lifted.buffer.data() + 2, text.data(), text.size());
  lifted.key = {lifted.buffer.data(), text.size() + 2};
  lifted.hash = hash_bytes(lifted.key);
}

}  // namespace lokadb::sql
