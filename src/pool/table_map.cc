#include "pool/table_map.h"

#include <charconv>

#include "proto/message.h"

namespace lokadb {

namespace {

// A number and the mark behind it (none at the end), taken from the front.
template <class T>
bool take(std::string_view& text, char mark, T& out) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return mark == ' ';
  if (text.front() != mark) return false;
  text.remove_prefix(1);
  return true;
}

std::uint64_t place_of(std::uint32_t table, std::uint16_t column) { return std::uint64_t{table} << 16 | column; }

void store_u16(std::byte* p, std::uint16_t v) {
  p[0] = static_cast<std::byte>(v >> 8);
  p[1] = static_cast<std::byte>(v);
}

}  // namespace

bool TableMap::parse(std::string_view text) {
  columns_.clear();
  while (!text.empty()) {
    std::uint32_t table = 0;
    std::uint16_t column = 0;
    Place place{};
    if (!take(text, '.', table) || !take(text, '=', column) || !take(text, '.', place.table) ||
        !take(text, ' ', place.column))
      return false;
    columns_[place_of(table, column)] = place;
  }
  return true;
}

bool TableMap::translate(std::span<std::byte> message) const {
  constexpr std::size_t kFixed = 18;  // bytes of a column behind its name
  std::size_t at = kHeaderSize;
  if (message.size() < at + 2) return false;
  std::size_t count = load_u16(message.data() + at);
  at += 2;
  for (; count > 0; --count) {
    while (at < message.size() && message[at] != std::byte{0}) ++at;
    if (message.size() - at < 1 + kFixed) return false;
    std::byte* p = message.data() + at + 1;
    auto it = columns_.find(place_of(load_u32(p), load_u16(p + 4)));
    Place place = it != columns_.end() ? it->second : Place{0, 0};
    store_u32(p, place.table);
    store_u16(p + 4, place.column);
    at += 1 + kFixed;
  }
  return at == message.size();
}

}  // namespace lokadb
