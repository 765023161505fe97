// Our login at a PostgreSQL server: answers to its authentication requests. One object a login, no sockets.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "proto/scram.h"

namespace lokadb {

struct ServerCredentials {
  std::string user;
  std::string secret;                   // plain, md5 or SCRAM verifier; empty: none
  std::optional<ScramKeys> scram_keys;  // captured from a client login with the same verifier
};

class ServerAuth {
 public:
  explicit ServerAuth(ServerCredentials credentials) : credentials_(std::move(credentials)) {}

  // Body of an 'R' message. Appends the answer, if one is due. True: AuthenticationOk came.
  // Errors carry PgBouncer's texts ("server login failed: wrong password type" ...).
  Result<bool> on_request(Bytes body, ByteBuffer& out);

 private:
  Result<bool> cleartext(ByteBuffer& out);
  Result<bool> md5(std::string_view salt, ByteBuffer& out);
  Result<bool> sasl_start(Bytes mechanisms, ByteBuffer& out);

  ServerCredentials credentials_;
  std::unique_ptr<ScramClient> scram_;
  enum class SaslStep { None, Started, Answered, Verified } step_ = SaslStep::None;
};

}  // namespace lokadb
