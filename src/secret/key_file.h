// The control plane's key file: one line, 64 hexadecimal digits; nobody but its owner may read it.
#pragma once

#include <string>

#include "base/result.h"

namespace lokadb::secret {

inline constexpr std::size_t kKeySize = 32;

// The file must not be there yet.
Result<Done> make_key_file(const std::string& path);
// kKeySize bytes. What is wrong names the file, never what is in it.
Result<std::string> read_key_file(const std::string& path);

}  // namespace lokadb::secret
