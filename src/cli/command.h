// A subcommand of lokadb: one file each, listed in main.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/flags.h"
#include "cli/json.h"

namespace lokadb::cli {

struct Command {
  std::string_view name;
  std::string_view summary;    // one line
  std::string_view arguments;  // what follows the flags, as in the help; empty: nothing may
  std::span<const FlagSpec> flags;
  int (*run)(const Flags& flags);  // exit status; throws Failure
};

extern const Command kInit, kAddTable, kRemoveTable, kTables, kOrgs, kMoveOrg, kPause, kResume, kOrgProfile, kKeygen,
    kOrgCredentials, kRefsDiff, kRefsSync, kExplain;

inline constexpr FlagSpec kDbFlag{"db", "CLOUD", "connection string or URI of the cloud database", true};
inline constexpr FlagSpec kJsonFlag{"json", "", "answer in JSON, for programs"};
inline constexpr FlagSpec kDryRunFlag{"dry-run", "", "say what would be done, and do nothing"};

// What a subcommand has to say, as a line for people or as a JSON object.
void say(const Flags& flags, const std::string& sentence, const JsonObject& json);

}  // namespace lokadb::cli
