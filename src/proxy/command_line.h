// The command line of lokadb-proxy: PgBouncer's options.
#pragma once

#include <optional>
#include <string>

namespace lokadb {

struct CommandLine {
  bool daemon = false;
  bool quiet = false;
  bool reboot = false;
  int verbose = 0;  // number of -v
  std::optional<std::string> user;
  std::string config_file;
};

// Prints and exits for --help, --version and mistakes.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace lokadb
