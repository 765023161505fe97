// Verdicts of plugins: whether one is sound, and what several come to together. Pure.
#pragma once

#include <span>
#include <string>

#include "plugin/plugin.h"

namespace lokadb {

// Reads what a plugin filled in. Empty, or what is wrong with it. A verdict that the moment has no use for (direct in
// inspect) is no opinion, or in review a fault.
std::string read_verdict(PluginEntry entry, const lokadb_plugin& plugin, const Batch& batch,
                         const lokadb_verdict& verdict, PluginOpinion& opinion);

// What one plugin of the chain thinks in a round of decide.
struct RoundOpinion {
  std::uint32_t plugin = 0;
  PluginOpinion opinion;
};

// By strictness: ask, cloud, direct, no opinion. (A refusal ends the round by itself.) Two organizations or two
// targets: LOKADB_REFUSE without a reason.
BatchVerdict combined(std::span<const RoundOpinion> opinions);

}  // namespace lokadb
