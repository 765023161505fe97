// Small text helpers: ASCII only, never locale dependent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lokadb {

char lower(char c);
std::string lower(std::string_view s);
bool iequals(std::string_view a, std::string_view b);
bool is_space(char c);
std::string_view trim(std::string_view s);
std::string_view rtrim(std::string_view s);

// Splits at commas and white space, drops empty parts.
std::vector<std::string> split_list(std::string_view s);

// Whole text is a C integer literal (10, 0x1f, 0777, sign allowed), else nullopt.
std::optional<std::int64_t> parse_c_int(std::string_view s);

// The leading decimal number as atoi reads it; no digits: 0; saturates.
std::int64_t parse_atoi(std::string_view s);

// printf into a string.
std::string format(const char* fmt, ...) __attribute__((format(printf, 1, 2)));

// Transparent hash, so that maps keyed by std::string are searched with a string_view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

}  // namespace lokadb
