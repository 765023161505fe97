// The command line of one subcommand: -name VALUE, --name VALUE, -name=VALUE, -switch, and what remains.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lokadb::cli {

struct FlagSpec {
  std::string_view name;
  std::string_view value;  // what stands for its value in the help; empty: a switch
  std::string_view help;
  bool required = false;
};

class Flags {
 public:
  // Throws Failure with kUsage for unknown or repeated flags, missing values and missing required ones. A flag may be
  // repeated if its value is written in the table as "X…".
  Flags(std::span<const FlagSpec> specs, const std::vector<std::string>& arguments);

  bool has(std::string_view name) const { return values_.contains(std::string(name)); }
  // The value, or the fallback.
  std::string get(std::string_view name, std::string_view fallback = {}) const;
  std::vector<std::string> all(std::string_view name) const;
  // Seconds: 90, 90s, 1.5m, 1h, 500ms; a year at most. Throws Failure with kUsage, as number() does.
  double seconds(std::string_view name, double fallback) const;
  long number(std::string_view name, long fallback, long least, long most) const;
  // Arguments that are no flags, and everything after "--".
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> rest_;
};

}  // namespace lokadb::cli
