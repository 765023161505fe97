// Pieces that the secrets (secrets.cc) and the exchanges (scram.cc) of SCRAM share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/scram.h"

namespace lokadb {

// 1 to kMaxScramIterations in decimal, nothing else around it.
std::optional<std::uint32_t> parse_scram_iterations(std::string_view text);

std::optional<ScramKey> decode_scram_key(std::string_view base64);

struct DerivedKeys {
  ScramKeys keys;
  ScramKey stored_key{};
};
// Slow by design: about 0.3 milliseconds for 1000 iterations. The password is SASLprepped here.
DerivedKeys derive_scram_keys(std::string_view password, std::string_view salt, std::uint32_t iterations);

}  // namespace lokadb
