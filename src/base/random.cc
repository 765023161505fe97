#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <cstring>

#include "base/log.h"

namespace lokadb {

namespace {

struct Batch {
  std::array<std::byte, 512> bytes;
  std::size_t used = sizeof(bytes);
};

void draw(std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t n = getrandom(out.data(), out.size(), 0);
    if (n <= 0) log_fatal("getrandom: no random bytes");
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

void random_bytes(std::span<std::byte> out) {
  static thread_local Batch batch;
  if (out.empty()) return;  // which may have no address at all
  if (out.size() > batch.bytes.size()) return draw(out);
  if (batch.bytes.size() - batch.used < out.size()) {
    draw(batch.bytes);
    batch.used = 0;
  }
  std::memcpy(out.data(), batch.bytes.data() + batch.used, out.size());
  // Handed-out bytes become keys and nonces: nothing of them stays behind.
  std::memset(batch.bytes.data() + batch.used, 0, out.size());
  batch.used += out.size();
}

}  // namespace lokadb
