// What plugins may call (lokadb_host).
#pragma once

#include <cstddef>

#include "plugin/lokadb_plugin.h"

namespace lokadb {

// Static storage.
const lokadb_host* plugin_host();

// What plugins may fill a batch with.
inline constexpr std::size_t kMostPluginMemory = std::size_t{64} << 20;  // bytes, of one batch
inline constexpr std::size_t kMostFacts = 10'000;
inline constexpr std::size_t kMostSteps = 1'000;
inline constexpr std::size_t kMostTargets = 100;
inline constexpr std::size_t kMostPieces = 100'000;  // of a text that is split

}  // namespace lokadb
