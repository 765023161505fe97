// The secrets of pg_authid: their shapes, and how they come from a password.
#include <algorithm>
#include <charconv>

#include "proto/crypto.h"
#include "proto/saslprep.h"
#include "proto/scram.h"
#include "proto/scram_keys.h"

namespace lokadb {

namespace {

constexpr std::string_view kScramPrefix = "SCRAM-SHA-256$";

// Takes the part before `end` off the front of `rest`, and `end`; nullopt: there is none.
std::optional<std::string_view> cut(std::string_view& rest, char end) {
  std::size_t at = rest.find(end);
  if (at == rest.npos) return std::nullopt;
  std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return part;
}

bool is_md5_secret(std::string_view secret) {
  auto is_hex_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return secret.size() == 35 && secret.starts_with("md5") &&
         std::all_of(secret.begin() + 3, secret.end(), is_hex_digit);
}

}  // namespace

std::optional<std::uint32_t> parse_scram_iterations(std::string_view text) {
  std::uint32_t value = 0;
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMaxScramIterations) return std::nullopt;
  return value;
}

std::optional<ScramKey> decode_scram_key(std::string_view base64) {
  std::optional<std::string> raw = base64_decode(base64);
  ScramKey key;
  if (!raw || raw->size() != key.size()) return std::nullopt;
  std::ranges::copy(as_bytes(*raw), key.begin());
  return key;
}

DerivedKeys derive_scram_keys(std::string_view password, std::string_view salt, std::uint32_t iterations) {
  Sha256 salted = pbkdf2_sha256(saslprep(password), salt, iterations);
  ScramKeys keys{hmac_sha256(salted, "Client Key"), hmac_sha256(salted, "Server Key")};
  return {keys, sha256(keys.client_key)};
}

std::optional<ScramVerifier> parse_scram_verifier(std::string_view secret) {
  if (!secret.starts_with(kScramPrefix)) return std::nullopt;
  secret.remove_prefix(kScramPrefix.size());
  auto iterations_text = cut(secret, ':');
  auto salt_text = cut(secret, '$');
  auto stored_text = cut(secret, ':');
  if (!iterations_text || !salt_text || !stored_text) return std::nullopt;
  auto iterations = parse_scram_iterations(*iterations_text);
  auto salt = base64_decode(*salt_text);
  auto stored_key = decode_scram_key(*stored_text);
  auto server_key = decode_scram_key(secret);
  if (!iterations || !salt || salt->empty() || !stored_key || !server_key) return std::nullopt;
  return ScramVerifier{*iterations, std::move(*salt), *stored_key, *server_key};
}

ScramVerifier make_scram_verifier(std::string_view password, std::string_view salt, std::uint32_t iterations) {
  DerivedKeys derived = derive_scram_keys(password, salt, iterations);
  return {iterations, std::string(salt), derived.stored_key, derived.keys.server_key};
}

std::string to_text(const ScramVerifier& verifier) {
  return std::string(kScramPrefix) + std::to_string(verifier.iterations) + ':' +
         base64_encode(as_bytes(verifier.salt)) + '$' + base64_encode(verifier.stored_key) + ':' +
         base64_encode(verifier.server_key);
}

SecretKind kind_of_secret(std::string_view secret) {
  if (secret.empty()) return SecretKind::Empty;
  if (is_md5_secret(secret)) return SecretKind::Md5;
  return parse_scram_verifier(secret) ? SecretKind::Scram : SecretKind::Plain;
}

std::string md5_secret(std::string_view password, std::string_view user) {
  return "md5" + md5_hex(std::string(password) + std::string(user));
}

std::string md5_response(std::string_view stored, std::string_view salt) {
  std::string_view digest = stored.substr(std::min<std::size_t>(stored.size(), 3));
  return "md5" + md5_hex(std::string(digest) + std::string(salt));
}

}  // namespace lokadb
