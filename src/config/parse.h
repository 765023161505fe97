// The configuration file as a Config, without touching the system: the includes come from a callback, the lines for
// the log are collected. load_config() is this plus files and the log; tests and the fuzzer call it directly.
#pragma once

#include <optional>
#include <string>

#include "config/config.h"
#include "config/ini_reader.h"
#include "config/options.h"

namespace lokadb {

// nullopt: refused, `faults` says why. `previous` (null at start) gives the values a reload keeps. The userlist of the
// result is previous's, or an empty one.
std::optional<Config> parse_config(const std::string& path, const IniSource& source, const Config* previous,
                                   Faults& faults);

}  // namespace lokadb
