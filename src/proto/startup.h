// The first packets of a connection (PostgreSQL manual, "Message Formats": StartupMessage, SSLRequest,
// GSSENCRequest, CancelRequest). Pure; fuzzed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace lokadb {

inline constexpr std::size_t kMaxStartupPacket = 65536;

// Major version << 16 | minor. 3.1 was never made.
inline constexpr std::uint32_t kProtocol30 = 3 << 16, kProtocol32 = 3 << 16 | 2;

// The newest version known here that a client may mean who asks for this one (of major version 3).
constexpr std::uint32_t spoken_version(std::uint32_t asked) { return asked < kProtocol32 ? kProtocol30 : kProtocol32; }

enum class FirstPacket { Startup, Ssl, GssEnc, Cancel };

// Views into the packet.
struct StartupParameters {
  std::uint32_t version = 0;                                              // major << 16 | minor
  std::vector<std::pair<std::string_view, std::string_view>> parameters;  // in order, "_pq_." ones not among them
  std::vector<std::string_view> protocol_options;                         // the names that begin with "_pq_."
};

// Length of the packet that starts at `head` (at least 4 bytes), header included, or an error for impossible
// lengths: shorter than 8, longer than kMaxStartupPacket ("bad packet header: 'HEX'", the first 8 bytes of `head`).
Result<std::size_t> startup_packet_length(Bytes head);

// What a whole packet is. Unknown major versions: error 0A000 (2.0: "old V2 protocol not supported"). An SSLRequest or
// GSSENCRequest of another length than 8 is a bad packet. A CancelRequest is at least 12 bytes.
Result<FirstPacket> classify_first_packet(Bytes packet);

// A whole StartupMessage, header included. Errors with PgBouncer's texts ("invalid startup packet layout: expected
// terminator as last byte").
Result<StartupParameters> parse_startup(Bytes packet);

// The "options" parameter, as PostgreSQL splits it: words separated by white space, backslash escapes the next
// character; -c name=value, -cname=value, --name=value. Anything else is PgBouncer's error (parity list 5.2).
// '-' in names given as --name becomes '_'.
Result<std::vector<std::pair<std::string, std::string>>> parse_startup_options(std::string_view options);

// What a server answers who does not know the version or the options asked for (NegotiateProtocolVersion): the newest
// version it knows; nullopt: broken. Without header.
std::optional<std::uint32_t> parse_negotiation(Bytes body);

enum class ReplicationMode { None, Physical, Logical };
// Value of the "replication" parameter: "database" = logical; true/on/yes/1 and their prefixes as PostgreSQL's
// parse_bool takes them = physical; anything else none.
ReplicationMode parse_replication(std::string_view value);

}  // namespace lokadb
