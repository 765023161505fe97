// Passwords as the control plane keeps them: encrypted with AES-256-GCM. What a password is for is authenticated with
// it, so that a row cannot be given to another organization. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lokadb::secret {

// What the password of an organization's login is for. kind: fdw or direct.
std::string purpose_of_login(std::string_view org, std::string_view kind, std::string_view user);

// key: of a key file (kKeySize bytes). The result is hexadecimal: nonce, tag, encrypted text.
Result<std::string> seal(std::string_view key, std::string_view text, std::string_view purpose);
// sealed: hexadecimal, as of seal(), or with PostgreSQL's \x in front. An error: another key or another purpose than it
// was made with, or not what was made.
Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view purpose);

}  // namespace lokadb::secret
