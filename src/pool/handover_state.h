// The writing and reading of Handover's format: numbers in network order, texts with their length in front.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "pool/parameters.h"
#include "pool/prepared.h"
#include "proto/scram.h"

namespace lokadb {

struct DatabaseConfig;

// The text that every state begins with; another layout has another number.
inline constexpr std::string_view kHandoverFormat = "lokadb handover 3";
bool has_our_format(Bytes state);

// What a server connection was made from; where the successor's entry says otherwise, it is obsolete.
std::string origin_of(const DatabaseConfig& config);

using TextPairs = std::vector<std::pair<std::string, std::string>>;

class StateWriter {
 public:
  void number(std::uint64_t v) {
    out_.u32(static_cast<std::uint32_t>(v >> 32));
    out_.u32(static_cast<std::uint32_t>(v));
  }
  void signed_number(std::int64_t v) { number(static_cast<std::uint64_t>(v)); }
  void flag(bool v) { out_.u8(v ? 1 : 0); }
  void text(std::string_view v) {
    number(v.size());
    out_.text(v);
  }
  void bytes(Bytes v) { text(as_text(v)); }
  void pairs(const TextPairs& all);
  void parameters(const TrackedNames& names, const ParameterSetPtr& set);
  void names(const TrackedNames& names, const std::vector<bool>& which);
  void statement(const StatementPtr& statement);  // null too
  void keys(const std::optional<ScramKeys>& keys);
  std::string take() { return std::string(as_text(out_.bytes())); }

 private:
  ByteBuffer out_;
};

// After the first thing that is not there the reader stays failed: all is read, then ok() asked once.
class StateReader {
 public:
  // adopted: the statements of earlier readers, by number; new ones are added.
  StateReader(Bytes in, const TrackedNames& tracked, std::map<std::uint64_t, StatementPtr>& adopted)
      : rest_(in), tracked_(tracked), adopted_(adopted) {}
  std::uint64_t number();
  std::int64_t signed_number() { return static_cast<std::int64_t>(number()); }
  bool flag();
  std::string text();
  std::vector<std::byte> bytes();
  TextPairs pairs();
  ParameterSetPtr parameters();  // names not tracked here are dropped
  std::vector<bool> names();     // true for those that were told
  StatementPtr statement();
  std::optional<ScramKeys> keys();
  bool ok() const { return !failed_; }
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  Bytes take(std::uint64_t n);
  Bytes rest_;
  const TrackedNames& tracked_;
  std::map<std::uint64_t, StatementPtr>& adopted_;
  bool failed_ = false;
};

}  // namespace lokadb
