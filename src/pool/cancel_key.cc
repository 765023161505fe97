#include "pool/cancel_key.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/random.h"

namespace lokadb {

namespace {
constexpr std::size_t kIdLow = 1, kIdHigh = 2, kHops = 7;  // which bytes the marks are in
constexpr std::byte kHopBits{0x03};
}  // namespace

std::optional<CancelKey> CancelKey::from(Bytes bytes) {
  bool is_known = bytes.size() == static_cast<std::size_t>(KeyLength::Usual) ||
                  bytes.size() == static_cast<std::size_t>(KeyLength::Long);
  if (!is_known) return std::nullopt;
  CancelKey key;
  key.size_ = static_cast<std::uint8_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), key.bytes_.begin());
  return key;
}

CancelKey make_cancel_key(int peer_id, KeyLength length) {
  CancelKey key;
  key.size_ = static_cast<std::uint8_t>(length);
  random_bytes(std::span(key.bytes_).first(key.size_));
  key[0] &= std::byte{0x7f};  // drivers show the first half as a process id
  if (peer_id == 0) return key;
  key[kIdLow] = static_cast<std::byte>(peer_id & 0xff);
  key[kIdHigh] = static_cast<std::byte>(peer_id >> 8 & 0xff);
  key[kHops] = (key[kHops] & ~kHopBits) | static_cast<std::byte>(kMostHops);
  return key;
}

int peer_of(const CancelKey& key) { return static_cast<int>(key[kIdLow]) | static_cast<int>(key[kIdHigh]) << 8; }

int hops_left(const CancelKey& key) { return static_cast<int>(key[kHops] & kHopBits); }

CancelKey one_hop_less(const CancelKey& key) {
  CancelKey less = key;
  int hops = hops_left(key);
  less[kHops] = (key[kHops] & ~kHopBits) | static_cast<std::byte>(hops > 0 ? hops - 1 : 0);
  return less;
}

bool is_same_key(const CancelKey& a, const CancelKey& b, bool with_marks) {
  CancelKey left = a, right = b;
  if (with_marks) {
    left[kHops] |= kHopBits;
    right[kHops] |= kHopBits;
  }
  return left.size() == right.size() && CRYPTO_memcmp(left.bytes().data(), right.bytes().data(), left.size()) == 0;
}

}  // namespace lokadb
