#include "base/text.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace lokadb {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = lower(c);
  return out;
}

bool iequals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view rtrim(std::string_view s) {
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

std::string_view trim(std::string_view s) {
  s = rtrim(s);
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  return s;
}

std::vector<std::string> split_list(std::string_view s) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at < s.size()) {
    if (s[at] == ',' || is_space(s[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < s.size() && s[end] != ',' && !is_space(s[end])) ++end;
    out.emplace_back(s.substr(at, end - at));
    at = end;
  }
  return out;
}

std::optional<std::int64_t> parse_c_int(std::string_view s) {
  if (s.empty() || is_space(s.front())) return std::nullopt;
  std::string copy(s);
  char* end = nullptr;
  errno = 0;
  long long v = std::strtoll(copy.c_str(), &end, 0);
  if (errno != 0 || end == copy.c_str() || end != copy.c_str() + copy.size()) return std::nullopt;
  return v;
}

std::int64_t parse_atoi(std::string_view s) {
  std::string copy(s);
  return std::strtoll(copy.c_str(), nullptr, 10);
}

std::string format(const char* fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = std::vsnprintf(nullptr, 0, fmt, args);
  va_end(args);
  std::string out(n > 0 ? static_cast<std::size_t>(n) : 0, '\0');
  if (n > 0) std::vsnprintf(out.data(), out.size() + 1, fmt, again);
  va_end(again);
  return out;
}

}  // namespace lokadb
