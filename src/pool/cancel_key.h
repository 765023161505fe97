// The keys clients get for their cancel requests: random, but for marks that let processes sharing a port ([peers])
// pass a request on to the one that gave out its key. The marks are PgBouncer's, so that both may be peers; a peer that
// is PgBouncer passes on keys of the usual length only. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace lokadb {

// Up to protocol 3.1 a key is a process number and a secret of four bytes each; since 3.2 the secret may be longer, and
// ours then has as many bytes as PostgreSQL's.
enum class KeyLength : std::uint8_t { Usual = 8, Long = 36 };

class CancelKey {
 public:
  CancelKey() = default;
  // nullopt: of no length that we give out.
  static std::optional<CancelKey> from(Bytes bytes);

  Bytes bytes() const { return Bytes(bytes_).first(size_); }
  std::size_t size() const { return size_; }
  std::uint32_t number() const { return load_u32(bytes_.data()); }  // what drivers show as a process id
  std::byte& operator[](std::size_t i) { return bytes_[i]; }
  std::byte operator[](std::size_t i) const { return bytes_[i]; }

 private:
  friend CancelKey make_cancel_key(int peer_id, KeyLength length);
  std::array<std::byte, 36> bytes_{};
  std::uint8_t size_ = static_cast<std::uint8_t>(KeyLength::Usual);
};

inline constexpr int kMostHops = 3;

// peer_id 0: a process without peers, no marks.
CancelKey make_cancel_key(int peer_id, KeyLength length);

// Of a key that has marks.
int peer_of(const CancelKey& key);
int hops_left(const CancelKey& key);
CancelKey one_hop_less(const CancelKey& key);

// In the time it takes for any other key. with_marks: whatever way the request has come.
bool is_same_key(const CancelKey& a, const CancelKey& b, bool with_marks);

}  // namespace lokadb
