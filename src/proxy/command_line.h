// The command line of lokadb-proxy: PgBouncer's options.
#pragma once

#include <optional>
#include <string>

namespace lokadb {

struct CommandLine {
  bool daemon = false;
  bool quiet = false;
  bool reboot = false;
  bool as_pgbouncer = false;  // run under PgBouncer's name: messages have it too
  int verbose = 0;            // number of -v
  std::optional<std::string> user;
  std::string config_file;

  const char* program_name() const { return as_pgbouncer ? "PgBouncer" : "lokadb-proxy"; }
};

// Prints and exits for --help, --version and mistakes.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace lokadb
