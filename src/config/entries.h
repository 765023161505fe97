// One line of [databases], [users] or [peers] as a struct.
#pragma once

#include <optional>
#include <string_view>

#include "config/config.h"
#include "config/options.h"

namespace lokadb {

// nullopt: refused, and a line for the log was added to `faults`. Pure; any thread.
std::optional<DatabaseConfig> parse_database_entry(std::string_view name, std::string_view text, Faults& faults);
std::optional<UserConfig> parse_user_entry(std::string_view name, std::string_view text, Faults& faults);
std::optional<PeerConfig> parse_peer_entry(std::string_view name, std::string_view text, Faults& faults);

}  // namespace lokadb
