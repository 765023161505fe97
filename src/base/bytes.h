// Bytes of the wire: network-order numbers, and a growing buffer to build messages in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace lokadb {

using Bytes = std::span<const std::byte>;  // borrowed: whoever stores one says who keeps the bytes alive

inline std::uint32_t load_u32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline std::uint16_t load_u16(const std::byte* p) {
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return __builtin_bswap16(v);
}
inline void store_u32(std::byte* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, 4);
}

inline std::string_view as_text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
inline Bytes as_bytes(std::string_view s) { return {reinterpret_cast<const std::byte*>(s.data()), s.size()}; }

// Appends; owns its memory; clear() keeps the capacity.
class ByteBuffer {
 public:
  void u8(std::uint8_t v) { data_.push_back(static_cast<std::byte>(v)); }
  void u16(std::uint16_t v) {
    u8(static_cast<std::uint8_t>(v >> 8));
    u8(static_cast<std::uint8_t>(v));
  }
  void u32(std::uint32_t v) {
    std::byte b[4];
    store_u32(b, v);
    append(b);
  }
  // n more bytes, zero, for the caller to fill; valid until the next change.
  std::byte* extend(std::size_t n) {
    data_.resize(data_.size() + n);
    return data_.data() + data_.size() - n;
  }
  void append(Bytes b) { data_.insert(data_.end(), b.begin(), b.end()); }
  void text(std::string_view s) { append(as_bytes(s)); }
  // A string of the protocol: the text and a zero byte.
  void cstring(std::string_view s) {
    text(s);
    u8(0);
  }

  std::byte* data() { return data_.data(); }
  const std::byte* data() const { return data_.data(); }
  std::size_t size() const { return data_.size(); }
  bool empty() const { return data_.empty(); }
  void clear() { data_.clear(); }
  void reserve(std::size_t n) { data_.reserve(n); }
  Bytes bytes() const { return data_; }
  std::vector<std::byte>& storage() { return data_; }
  const std::vector<std::byte>& storage() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

}  // namespace lokadb
