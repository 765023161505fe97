// Values of the configuration as text: the words of each enum, numbers, seconds. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace lokadb {

// The words of an enum in the order of its enumerators; name_of() and parse_word() both read it.
template <class E>
std::span<const std::string_view> words_of();
template <>
std::span<const std::string_view> words_of<PoolMode>();
template <>
std::span<const std::string_view> words_of<AuthType>();
template <>
std::span<const std::string_view> words_of<TlsMode>();
template <>
std::span<const std::string_view> words_of<LoadBalanceHosts>();

// Case does not count. nullopt: no such word.
template <class E>
std::optional<E> parse_word(std::string_view text) {
  auto words = words_of<E>();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (iequals(words[i], text)) return static_cast<E>(i);
  return std::nullopt;
}

// A C integer literal that fits an int.
std::optional<int> parse_int(std::string_view text);

// A non-negative decimal number of seconds, no unit. nullopt also for more than 290 000 years.
std::optional<Micros> parse_seconds(std::string_view text);

// As printf's %g prints it, whatever the locale.
std::string seconds_text(Micros time);

// Parts of a list at commas only, trimmed, empty ones dropped: host names and socket folders may hold blanks.
TextList split_commas(std::string_view text);

}  // namespace lokadb
