// SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it (manual, "SASL Authentication"), both roles, no channel
// binding, and the secrets of pg_authid. Pure: no sockets; any thread. User names are not normalized (PostgreSQL
// ignores the SCRAM user name); passwords are, with SASLprep where they are valid UTF-8, as libpq does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lokadb {

using ScramKey = std::array<std::byte, 32>;

// Deriving keys costs time in proportion to the iterations, and peers and secrets name their number: above this limit
// (some seconds) a verifier is none, and a server's message is refused.
inline constexpr std::uint32_t kMaxScramIterations = 10'000'000;

// 24 characters that nobody can guess. Tests give the exchanges below a nonce of their own instead.
std::string scram_nonce();

// SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>
struct ScramVerifier {
  std::uint32_t iterations = 0;
  std::string salt;  // raw bytes
  ScramKey stored_key{};
  ScramKey server_key{};
};

// Strict: canonical base64, a salt that is not empty, no sign or leading zero before the iterations.
std::optional<ScramVerifier> parse_scram_verifier(std::string_view secret);
// With a given salt, so that mock secrets can be stable per name. iterations >= 1.
ScramVerifier make_scram_verifier(std::string_view password, std::string_view salt, std::uint32_t iterations);
std::string to_text(const ScramVerifier& verifier);

// What a client proved and what lets us log in as it elsewhere with the same verifier (PgBouncer's "pass-through").
struct ScramKeys {
  ScramKey client_key{};
  ScramKey server_key{};
};

enum class SecretKind { Empty, Plain, Md5, Scram };
// By shape, as PgBouncer: md5 + 32 lower-case hex digits; what parse_scram_verifier takes; else plain text.
SecretKind kind_of_secret(std::string_view secret);

// "md5" + md5(password + user) in hex: what pg_authid stores.
std::string md5_secret(std::string_view password, std::string_view user);
// The answer to AuthenticationMD5Password: `stored` is a md5 secret, salt 4 bytes.
std::string md5_response(std::string_view stored, std::string_view salt);

// The server role, for a client that logs in to us. Steps: first(client-first) -> server-first; final(client-final) ->
// server-final; each once. Errors tell the client "SASL authentication failed": with 28P01 for a wrong proof, with
// 08P01 and a log text for malformed or untimely messages. Channel binding flags n and y are accepted, p and
// authorization identities refused.
class ScramServer {
 public:
  explicit ScramServer(const ScramVerifier& verifier, std::string nonce = scram_nonce());
  Result<std::string> first(std::string_view message);
  Result<std::string> final(std::string_view message);
  // After final() succeeded.
  const ScramKeys& keys() const { return keys_; }

 private:
  ScramVerifier verifier_;
  std::string nonce_;  // ours; the client's in front of it after first()
  std::string gs2_header_;
  std::string client_first_bare_;
  std::string server_first_;  // empty: not the time for final()
  ScramKeys keys_;
};

// The client role, for our login at a PostgreSQL server. Steps: first() -> client-first; final(server-first) ->
// client-final; verify(server-final). Errors are 08P01 with the text waiting clients get ("server login failed: ...").
class ScramClient {
 public:
  // From a password ...
  explicit ScramClient(std::string password, std::string nonce = scram_nonce());
  // ... or from keys captured from a client that used the same verifier (salt and iterations are not needed then).
  explicit ScramClient(const ScramKeys& keys, std::string nonce = scram_nonce());

  std::string first();
  Result<std::string> final(std::string_view server_first);
  // Checks the server's signature: proves that the server knows the verifier, too.
  Result<Done> verify(std::string_view server_final);

 private:
  std::optional<std::string> password_;
  ScramKeys keys_;
  std::string nonce_;
  std::string client_first_bare_;  // empty: not the time for final()
  std::string auth_message_;       // empty: not the time for verify()
};

}  // namespace lokadb
