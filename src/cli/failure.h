// How a subcommand ends early: the text for standard error and the exit status.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lokadb::cli {

inline constexpr int kRefused = 1;  // refused, failed, or found something
inline constexpr int kUsage = 2;    // called wrongly

struct Failure {
  std::string text;
  int status = kRefused;
  std::string state{};                  // SQLSTATE, if a server said it
  std::vector<std::string> problems{};  // one sentence each, if there are several; the text has them, too
};

}  // namespace lokadb::cli
