// The auth_file: lines of "user" "password".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"

namespace lokadb {

inline constexpr std::size_t kLongestUserName = 127;
inline constexpr std::size_t kLongestPassword = 65530;

struct UserlistText {
  Userlist list;
  std::string fault;  // not empty: reading stopped there; what came before stays
};

// A quote inside is doubled; the rest of a line after the password is ignored, so are lines that begin with ; and empty
// ones. Of several lines for a name the last counts. Pure; any thread.
UserlistText parse_userlist(std::string_view text);

// nullopt: the file cannot be read, which was logged. A fault inside the file is logged too. Main thread; blocks.
std::optional<Userlist> load_userlist(const std::string& path);

}  // namespace lokadb
