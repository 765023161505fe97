// What a statement may leave in a session that other clients will use, told from its text.
//
// Most statements leave nothing, and every one of them is looked at: so first a search for a few pairs of letters, 16
// bytes at a time; only if one of the words that matter is there, the text is split into tokens. What cannot be told is
// taken for what leaves something. What a function does inside is not seen.
#pragma once

#include <cstdint>
#include <string_view>

#include "pool/parameters.h"

namespace lokadb {

// Bits, added up over a transaction.
using Residue = std::uint8_t;
namespace residue {
inline constexpr Residue kNone = 0;
inline constexpr Residue kSettings = 1;  // settings that follow the client may be others now
inline constexpr Residue kReset = 2;     // some may have been put back to what they were at the start of the session
inline constexpr Residue kState = 4;     // something that no other client may find; DISCARD ALL takes it away
inline constexpr Residue kLasting = 8;   // DISCARD ALL does not
inline constexpr Residue kUnread = 16;   // the text was not seen as a whole: command tags have to tell
// Not left anywhere: statements of which each Bind has to be looked into (backend_call.h).
inline constexpr Residue kCancelCall = 32;
inline constexpr Residue kTerminateCall = 64;
inline constexpr Residue kCalls = kCancelCall | kTerminateCall;
}  // namespace residue

// The whole text of a Query or Parse. Any thread; allocates nothing.
Residue residue_of(std::string_view sql, const TrackedNames& tracked);

// The same for a piece of a text that streams, the pieces overlapping by kResidueOverlap bytes: coarser, never less.
inline constexpr std::size_t kResidueOverlap = 32;
Residue residue_of_piece(std::string_view piece);

// What a CommandComplete tells. kUnread statements: by tags alone.
Residue residue_of_tag(std::string_view tag, bool is_unread);

// The first look: whether one of the words that matter may be in it.
bool has_suspicious_word(std::string_view sql);

}  // namespace lokadb
