// Runs cases through a plugin without a proxy, and says where the plugin breaks its contract.
#pragma once

#include <string>
#include <vector>

#include "check/script.h"
#include "plugin/chain.h"

namespace lokadb::check {

// What came of a case: lines that tell it, and what is wrong with it.
struct Outcome {
  std::string verdict;  // in the words of `expect`, with the reason
  std::vector<std::string> trace;
  std::vector<std::string> faults;
};

// One session of its own, all moments. `chain` has one plugin.
Outcome run_case(PluginChain& chain, const Case& c);

// All cases at once from several threads, over and over for about a second; the fault, or empty. Verdicts are not
// looked at.
std::string run_together(PluginChain& chain, const std::vector<Case>& cases, int threads);

}  // namespace lokadb::check
