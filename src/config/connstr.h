// The values of [databases], [users] and [peers]: `key=value` pairs as in libpq connection strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lokadb {

struct ConnPair {
  std::string_view key;  // into the text
  std::string value;     // unquoted, never empty
};

// Pairs separated by blanks; blanks are allowed around =; a value may be in single quotes, doubled inside.
class ConnString {
 public:
  explicit ConnString(std::string_view text) : rest_(text) {}  // borrowed

  // nullopt: no pair left, or one that cannot be read; failed() tells which.
  std::optional<ConnPair> next();
  bool failed() const { return failed_; }

 private:
  std::optional<ConnPair> fail();
  std::optional<std::string> take_value();
  void skip_blanks();

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace lokadb
