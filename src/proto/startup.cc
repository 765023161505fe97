#include "proto/startup.h"

#include <algorithm>

#include "base/text.h"
#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::size_t kStartupHeader = 8;  // length, which counts itself; request code or version
constexpr std::uint32_t kCancelCode = 1234 << 16 | 5678;
constexpr std::uint32_t kSslCode = 1234 << 16 | 5679;
constexpr std::uint32_t kGssEncCode = 1234 << 16 | 5680;

Error bad_header(Bytes packet) {
  std::string hex;
  for (std::byte b : packet.first(std::min(packet.size(), kStartupHeader))) hex += format("%02x", static_cast<int>(b));
  return fatal("bad packet header: '" + hex + "'");
}

Error unsupported(Error error) {
  error.state = sqlstate::kFeatureNotSupported;
  return error;
}

Error bad_layout() { return fatal("invalid startup packet layout: expected terminator as last byte"); }

Error bad_options() {
  return fatal("unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed");
}

// The next word of an options string, its escapes resolved; nullopt at the end. A backslash at the very end is dropped.
std::optional<std::string> next_word(std::string_view& rest) {
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  if (rest.empty()) return std::nullopt;
  std::string word;
  while (!rest.empty() && !is_space(rest.front())) {
    if (rest.front() == '\\') rest.remove_prefix(1);
    if (rest.empty()) break;
    word += rest.front();
    rest.remove_prefix(1);
  }
  return word;
}

bool is_prefix_of(std::string_view value, std::string_view word) {
  return !value.empty() && value.size() <= word.size() && iequals(value, word.substr(0, value.size()));
}

}  // namespace

Result<std::size_t> startup_packet_length(Bytes head) {
  if (head.size() < 4) return bad_header(head);
  std::size_t length = load_u32(head.data());
  if (length < kStartupHeader || length > kMaxStartupPacket) return bad_header(head);
  return length;
}

Result<FirstPacket> classify_first_packet(Bytes packet) {
  if (packet.size() < kStartupHeader || load_u32(packet.data()) != packet.size()) return bad_header(packet);
  std::uint32_t code = load_u32(packet.data() + 4);
  if (code == kCancelCode) {
    if (packet.size() < 12) return fatal("bad cancel request");
    return FirstPacket::Cancel;
  }
  if (code == kSslCode || code == kGssEncCode) {
    if (packet.size() != kStartupHeader) return bad_header(packet);
    return code == kSslCode ? FirstPacket::Ssl : FirstPacket::GssEnc;
  }
  switch (code >> 16) {
    case 3:
      return FirstPacket::Startup;
    case 2:
      return unsupported(fatal("old V2 protocol not supported"));
    default:
      return unsupported(bad_header(packet));
  }
}

Result<StartupParameters> parse_startup(Bytes packet) {
  StartupParameters startup;
  startup.parameters.reserve(8);
  MessageReader reader(packet);
  reader.u32();
  startup.version = reader.u32();
  for (;;) {
    std::string_view name = reader.cstring();
    if (name.empty()) break;
    std::string_view value = reader.cstring();
    if (name.starts_with("_pq_.")) {
      startup.protocol_options.push_back(name);
    } else {
      startup.parameters.emplace_back(name, value);
    }
  }
  if (!reader.finished()) return bad_layout();
  return startup;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_startup_options(std::string_view options) {
  std::vector<std::pair<std::string, std::string>> settings;
  while (auto word = next_word(options)) {
    bool is_long = word->starts_with("--");
    if (!is_long && !word->starts_with("-c")) return bad_options();
    if (*word == "-c") {
      word = next_word(options);
      if (!word) return bad_options();
    } else {
      word->erase(0, 2);
    }
    std::size_t equals = word->find('=');
    if (equals == std::string::npos || equals == 0) return bad_options();
    std::string name = word->substr(0, equals);
    if (is_long) std::replace(name.begin(), name.end(), '-', '_');
    settings.emplace_back(std::move(name), word->substr(equals + 1));
  }
  return settings;
}

std::optional<std::uint32_t> parse_negotiation(Bytes body) {
  MessageReader reader(body);
  std::uint32_t version = reader.u32();
  std::uint32_t count = reader.u32();
  if (count > body.size()) return std::nullopt;
  for (; count > 0; --count) reader.cstring();
  if (!reader.finished()) return std::nullopt;
  return version;
}

ReplicationMode parse_replication(std::string_view value) {
  if (value == "database") return ReplicationMode::Logical;
  bool is_true = is_prefix_of(value, "true") || is_prefix_of(value, "yes") || iequals(value, "on") || value == "1";
  return is_true ? ReplicationMode::Physical : ReplicationMode::None;
}

}  // namespace lokadb
