#include "proto/saslprep.h"

#include <stringprep.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace lokadb {

namespace {

struct Free {
  void operator()(char* p) const noexcept { std::free(p); }
};

// The library needs quadratic time, and a client that has not logged in yet picks the password: 64 kB would keep a
// worker busy for most of a second. Longer passwords stay as they are, which matters to the few SASLprep would change.
constexpr std::size_t kMaxPrepared = 1024;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

// The tables come from GNU libidn: SASLprep needs Unicode's compatibility decompositions and the character classes of
// RFC 3454, thousands of rows that are not ours to keep. Unassigned characters count as prohibited (STRINGPREP_NO_
// UNASSIGNED) because PostgreSQL's table of prohibited characters includes them.
std::string saslprep(std::string_view password) {
  std::string raw(password);
  // ASCII keeps its control characters, which SASLprep would prohibit: PostgreSQL skips SASLprep for ASCII altogether.
  if (is_ascii(password) || password.size() > kMaxPrepared || raw.find('\0') != raw.npos) return raw;
  char* prepared = nullptr;
  int rc = stringprep_profile(raw.c_str(), &prepared, "SASLprep", STRINGPREP_NO_UNASSIGNED);
  std::unique_ptr<char, Free> owner(prepared);
  if (rc != STRINGPREP_OK || *prepared == '\0') return raw;
  return prepared;
}

}  // namespace lokadb
