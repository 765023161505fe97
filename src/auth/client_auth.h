// How a client proves who it is (PostgreSQL manual, "Start-up" and "SASL Authentication"): one object a login, no
// sockets. An unknown user goes through the same exchange with a made-up secret and fails like a wrong password.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "config/config.h"
#include "proto/scram.h"

namespace lokadb {

struct ClientAuthInput {
  AuthType type = AuthType::Trust;
  std::string user;
  const std::string* secret = nullptr;            // null: unknown user; copied
  const ScramVerifier* known_verifier = nullptr;  // made earlier from the same plain secret; copied
  int scram_iterations = 4096;
};

enum class AuthStep { More, Done };

class ClientAuth {
 public:
  explicit ClientAuth(const ClientAuthInput& input);

  // Appends the first message to the client, if there is one. Done: nothing has to be proven (trust, any).
  Result<AuthStep> begin(ByteBuffer& out);
  // Body of a message of type 'p'. Appends what the client gets next; Done: it is who it says.
  Result<AuthStep> on_message(Bytes body, ByteBuffer& out);

  // After Done of a SCRAM login against a stored verifier: what lets us log in as this user elsewhere. Not from a plain
  // secret: a server with the same password has another salt.
  const std::optional<ScramKeys>& captured_keys() const { return captured_; }
  // The verifier that had to be made from a plain secret.
  const std::optional<ScramVerifier>& made_verifier() const { return made_; }

 private:
  enum class Method { None, Cleartext, Md5, Scram };
  Method choose_method() const;
  ScramVerifier verifier_for_exchange();
  Result<AuthStep> check_cleartext(std::string_view password);
  Result<AuthStep> check_md5(std::string_view response);
  Result<AuthStep> sasl_first(Bytes body, ByteBuffer& out);
  Result<AuthStep> sasl_final(Bytes body, ByteBuffer& out);

  AuthType type_;
  std::string user_;
  bool user_is_known_;
  std::string secret_;
  SecretKind kind_;
  std::optional<ScramVerifier> known_verifier_;
  int iterations_;
  Method method_;
  std::string md5_salt_;
  std::unique_ptr<ScramServer> scram_;
  bool is_mock_ = false;
  std::optional<ScramVerifier> made_;
  std::optional<ScramKeys> captured_;
};

}  // namespace lokadb
