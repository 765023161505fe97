// The first packet of a connection. Input: a packet; the value of an "options" parameter it may carry is split, too.
#include "proto/startup.h"

#include <cstdlib>

using namespace lokadb;

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

bool is_within(std::string_view part, Bytes whole) {
  std::string_view text = as_text(whole);
  return part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size();
}

void check_options(std::string_view text) {
  auto settings = parse_startup_options(text);
  if (!settings) return require(!settings.error().to_client.empty());
  std::size_t total = 0;
  for (const auto& [name, value] : *settings) {
    require(!name.empty() && name.find('=') == name.npos);
    total += name.size() + value.size() + 3;  // two dashes and an equals sign
  }
  require(total <= text.size());
}

void check_parameters(Bytes packet) {
  auto startup = parse_startup(packet);
  if (!startup) return;
  std::size_t total = 9;  // header and terminator
  for (const auto& [name, value] : startup->parameters) {
    require(is_within(name, packet) && is_within(value, packet) && !name.empty());
    require(!name.starts_with("_pq_."));
    total += name.size() + value.size() + 2;
    if (name == "options") check_options(value);
    if (name == "replication") require(parse_replication(value) != ReplicationMode::Logical || value == "database");
  }
  for (std::string_view name : startup->protocol_options) {
    require(is_within(name, packet) && name.starts_with("_pq_."));
    total += name.size() + 2;
  }
  require(total <= packet.size());
  if (startup->protocol_options.empty()) require(total == packet.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes packet(reinterpret_cast<const std::byte*>(data), size);
  auto length = startup_packet_length(packet);
  if (length) require(size >= 4 && *length >= 8 && *length <= kMaxStartupPacket);
  auto kind = classify_first_packet(packet);
  if (kind) require(length.operator bool() ? *length == size : size > kMaxStartupPacket);
  check_parameters(packet);
  check_options(as_text(packet));
  (void)parse_replication(as_text(packet));
  return 0;
}
