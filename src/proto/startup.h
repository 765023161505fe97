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

enum class ReplicationMode { None, Physical, Logical };
// Value of the "replication" parameter: "database" = logical; true/on/yes/1 and their prefixes as PostgreSQL's
// parse_bool takes them = physical; anything else none.
ReplicationMode parse_replication(std::string_view value);

}  // namespace lokadb
