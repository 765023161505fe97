// How a subcommand ends early: the text for standard error and the exit status.
#pragma once

#include <string>
#include <utility>

namespace lokadb::cli {

inline constexpr int kRefused = 1;  // refused, failed, or found something
inline constexpr int kUsage = 2;    // called wrongly

struct Failure {
  std::string text;
  int status = kRefused;
  std::string state{};  // SQLSTATE, if a server said it
};

}  // namespace lokadb::cli
