#include "pool/deallocate.h"

#include "base/text.h"

namespace lokadb {

namespace {

constexpr std::size_t kMaxName = 63;

bool starts_name(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || (c & 0x80) != 0; }
bool goes_on(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '$'; }

void skip_space(std::string_view& s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
}

// An identifier as the server stores it; empty: none here.
std::string take_name(std::string_view& s, bool& was_quoted) {
  std::string name;
  was_quoted = !s.empty() && s.front() == '"';
  if (!was_quoted) {
    if (s.empty() || !starts_name(s.front())) return {};
    while (!s.empty() && goes_on(s.front())) {
      name += lower(s.front());
      s.remove_prefix(1);
    }
    return name;
  }
  s.remove_prefix(1);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '"' && (i + 1 == s.size() || s[i + 1] != '"')) {
      s.remove_prefix(i + 1);
      return name;
    }
    if (s[i] == '"') ++i;
    name += s[i];
  }
  return {};
}

}  // namespace

std::optional<std::string> deallocated_name(std::string_view sql) {
  bool quoted = false;
  skip_space(sql);
  if (take_name(sql, quoted) != "deallocate" || quoted) return std::nullopt;
  skip_space(sql);
  std::string name = take_name(sql, quoted);
  skip_space(sql);
  if (name == "prepare" && !quoted && !sql.empty() && sql.front() != ';') {
    name = take_name(sql, quoted);
    skip_space(sql);
  }
  if (!sql.empty() && sql.front() == ';') sql.remove_prefix(1);
  skip_space(sql);
  if (!sql.empty() || name.empty() || name.size() > kMaxName || (name == "all" && !quoted)) return std::nullopt;
  return name;
}

}  // namespace lokadb
