// Whole small files (the configuration and what it names). Blocks; main thread.
#pragma once

#include <optional>
#include <string>

namespace lokadb {

// nullopt: `why` is the system's text for what failed ("No such file or directory").
std::optional<std::string> read_file(const std::string& path, std::string& why);

}  // namespace lokadb
