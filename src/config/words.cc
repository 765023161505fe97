#include "config/words.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace lokadb {

namespace {

constexpr std::string_view kPoolModes[] = {"session", "transaction", "statement"};
constexpr std::string_view kAuthTypes[] = {"any", "trust", "plain", "md5",          "cert",
                                           "hba", "ldap",  "pam",   "scram-sha-256"};
constexpr std::string_view kTlsModes[] = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"};
constexpr std::string_view kLoadBalanceHosts[] = {"round-robin", "disable"};

static_assert(std::size(kPoolModes) == static_cast<std::size_t>(PoolMode::Statement) + 1);
static_assert(std::size(kAuthTypes) == static_cast<std::size_t>(AuthType::Scram) + 1);
static_assert(std::size(kTlsModes) == static_cast<std::size_t>(TlsMode::VerifyFull) + 1);
static_assert(std::size(kLoadBalanceHosts) == static_cast<std::size_t>(LoadBalanceHosts::Disable) + 1);

}  // namespace

template <>
std::span<const std::string_view> words_of<PoolMode>() {
  return kPoolModes;
}
template <>
std::span<const std::string_view> words_of<AuthType>() {
  return kAuthTypes;
}
template <>
std::span<const std::string_view> words_of<TlsMode>() {
  return kTlsModes;
}
template <>
std::span<const std::string_view> words_of<LoadBalanceHosts>() {
  return kLoadBalanceHosts;
}

std::string_view name_of(PoolMode mode) { return kPoolModes[static_cast<std::size_t>(mode)]; }
std::string_view name_of(AuthType type) { return kAuthTypes[static_cast<std::size_t>(type)]; }
std::string_view name_of(TlsMode mode) { return kTlsModes[static_cast<std::size_t>(mode)]; }
std::string_view name_of(LoadBalanceHosts how) { return kLoadBalanceHosts[static_cast<std::size_t>(how)]; }

std::optional<int> parse_int(std::string_view text) {
  auto value = parse_c_int(text);
  if (!value || *value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<Micros> parse_seconds(std::string_view text) {
  constexpr double kMostSeconds = 9.2e12;  // still fits 64 bits as microseconds
  if (text.starts_with('+')) text.remove_prefix(1);
  // from_chars takes "inf" and "nan" too, and strtod would follow the locale.
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  double seconds = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc{} || end != text.data() + text.size() || seconds > kMostSeconds) return std::nullopt;
  return Micros(std::llround(seconds * 1e6));
}

std::string seconds_text(Micros time) {
  char buffer[64];
  double seconds = static_cast<double>(time.count()) / 1e6;
  auto [end, fault] = std::to_chars(buffer, buffer + sizeof buffer, seconds, std::chars_format::general, 6);
  return fault == std::errc{} ? std::string(buffer, end) : std::string();
}

TextList split_commas(std::string_view text) {
  TextList parts;
  while (!text.empty()) {
    std::size_t comma = std::min(text.find(','), text.size());
    auto part = trim(text.substr(0, comma));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace lokadb
