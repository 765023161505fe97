// Small helpers for the structs of lokadb_plugin.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plugin/lokadb_plugin.h"

namespace lokadb {

inline std::string_view view_of(const lokadb_string& s) {
  return s.data == nullptr ? std::string_view() : std::string_view(s.data, s.size);
}
inline lokadb_string string_of(std::string_view s) { return {s.data(), s.size()}; }

// The size each struct had in version 1.0; a smaller one is no version's. A field that is added later does not change
// what is here.
template <class T>
constexpr std::size_t first_size();
#define LOKADB_FIRST_SIZE(type, last)                 \
  template <>                                         \
  constexpr std::size_t first_size<type>() {          \
    return offsetof(type, last) + sizeof(type::last); \
  }
LOKADB_FIRST_SIZE(lokadb_statement, is_standard_strings)
LOKADB_FIRST_SIZE(lokadb_parameter, value)
LOKADB_FIRST_SIZE(lokadb_batch_info, servers)
LOKADB_FIRST_SIZE(lokadb_fact, reason)
LOKADB_FIRST_SIZE(lokadb_step, statement)
LOKADB_FIRST_SIZE(lokadb_replacement, has_two)
LOKADB_FIRST_SIZE(lokadb_target, known_as)
LOKADB_FIRST_SIZE(lokadb_plugin, session_state)
#undef LOKADB_FIRST_SIZE

inline bool is_reason(const lokadb_plugin& plugin, std::uint32_t reason) {
  return reason < plugin.reason_count || (reason == 0 && plugin.reason_count == 0);
}

// A text for clients and the log: no zero bytes, and not endless.
inline constexpr std::size_t kMostToldText = 8000;  // bytes
std::string told_text(std::string_view text);

}  // namespace lokadb
