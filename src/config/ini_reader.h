// Reads the sections and `key = value` lines of an ini file the way PgBouncer does, which no library we know of does:
// a value is the whole rest of the line (so `;` and `#` are part of it, and it is not unquoted), indented lines are
// lines of their own, there is no limit of length, `%include FILE` continues with another file. Debian's inih cuts
// lines at 200 bytes, ends values at " ;" and joins indented lines; with the lines read here nothing would be left
// for it to do, so it is not used.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/options.h"

namespace lokadb {

// What is told of a file. Each returns false to stop; it may have added lines to `faults` that say why, the reader
// adds the one with the place.
class IniHandler {
 public:
  virtual ~IniHandler() = default;
  // Where the line is of which the next call tells.
  virtual void at(const std::string& /*path*/, int /*line*/) {}
  virtual bool section(std::string_view name, Faults& faults) = 0;
  virtual bool value(std::string_view key, std::string_view value, Faults& faults) = 0;
};

// The text of the file at `path`; on failure nullopt, and `why` is the system's text.
using IniSource = std::function<std::optional<std::string>(const std::string& path, std::string& why)>;

inline constexpr int kMostIncludes = 10;  // files inside each other

// Reads the file `path` from `source` and what it includes. False: stopped, `faults` has the lines for the log.
bool read_ini(const std::string& path, const IniSource& source, IniHandler& handler, Faults& faults);

}  // namespace lokadb
