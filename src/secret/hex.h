// Bytes as lower-case hexadecimal digits, two each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lokadb::secret {

std::string to_hex(std::string_view bytes);
// nullopt: an odd number of digits, or something else among them.
std::optional<std::string> from_hex(std::string_view hex);

}  // namespace lokadb::secret
