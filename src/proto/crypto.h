// The few primitives the authentication exchanges stand on, through OpenSSL's EVP interface. Algorithms are looked up
// once per process. Any thread. An OpenSSL without SHA-256, or without memory, ends the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace lokadb {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(Bytes data);
Sha256 hmac_sha256(Bytes key, std::string_view text);
Sha256 pbkdf2_sha256(std::string_view password, std::string_view salt, std::uint32_t iterations);

// Lower-case hex. Where OpenSSL refuses MD5 (FIPS) the answer is random: it matches nothing, so the login fails.
std::string md5_hex(std::string_view data);

std::string base64_encode(Bytes data);
// Canonical base64 only: no white space, full padding, no stray bits in the last group.
std::optional<std::string> base64_decode(std::string_view text);

// Takes as long for a difference in the first byte as in the last; only the lengths may be learnt from the time.
bool equal_in_constant_time(Bytes a, Bytes b);

}  // namespace lokadb
