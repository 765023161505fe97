#include "auth/server_auth.h"

#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::string_view kScramMechanism = "SCRAM-SHA-256";

Error login_failed(const std::string& why) {
  return {sqlstate::kInvalidAuthorization, Severity::Fatal, "server login failed: " + why, {}};
}

}  // namespace

Result<bool> ServerAuth::on_request(Bytes body, ByteBuffer& out) {
  MessageReader reader(body);
  std::uint32_t code = reader.u32();
  if (!reader.ok()) return login_failed("broken authentication request");
  switch (code) {
    case 0:
      // A server that was asked for a proof of its own must have given it.
      if (step_ != SaslStep::None && step_ != SaslStep::Verified) return login_failed("unexpected AuthenticationOk");
      return true;
    case 3:
      return cleartext(out);
    case 5:
      return md5(as_text(reader.rest()), out);
    case 10:
      return sasl_start(reader.rest(), out);
    case 11: {
      if (step_ != SaslStep::Started) return login_failed("unexpected SASL message");
      auto answer = scram_->final(as_text(reader.rest()));
      if (!answer) return answer.error();
      step_ = SaslStep::Answered;
      MessageWriter m(out, 'p');
      m->text(*answer);
      return false;
    }
    case 12: {
      if (step_ != SaslStep::Answered) return login_failed("unexpected SASL message");
      if (auto verified = scram_->verify(as_text(reader.rest())); !verified) return verified.error();
      step_ = SaslStep::Verified;
      return false;
    }
    default:
      return login_failed("unknown/unsupported auth method: " + std::to_string(code));
  }
}

Result<bool> ServerAuth::cleartext(ByteBuffer& out) {
  if (kind_of_secret(credentials_.secret) != SecretKind::Plain) return login_failed("wrong password type");
  MessageWriter m(out, 'p');
  m->cstring(credentials_.secret);
  return false;
}

Result<bool> ServerAuth::md5(std::string_view salt, ByteBuffer& out) {
  SecretKind kind = kind_of_secret(credentials_.secret);
  if (salt.size() != 4) return login_failed("broken authentication request");
  if (kind != SecretKind::Plain && kind != SecretKind::Md5) return login_failed("wrong password type");
  const std::string stored =
      kind == SecretKind::Md5 ? credentials_.secret : md5_secret(credentials_.secret, credentials_.user);
  MessageWriter m(out, 'p');
  m->cstring(md5_response(stored, salt));
  return false;
}

Result<bool> ServerAuth::sasl_start(Bytes mechanisms, ByteBuffer& out) {
  if (step_ != SaslStep::None) return login_failed("unexpected SASL message");
  MessageReader reader(mechanisms);
  bool offered = false;
  for (std::string_view name = reader.cstring(); reader.ok() && !name.empty(); name = reader.cstring())
    offered = offered || name == kScramMechanism;
  if (!offered) return login_failed("none of the server's SASL authentication mechanisms are supported");
  SecretKind kind = kind_of_secret(credentials_.secret);
  if (kind == SecretKind::Plain)
    scram_ = std::make_unique<ScramClient>(credentials_.secret);
  else if (kind == SecretKind::Scram && credentials_.scram_keys)
    scram_ = std::make_unique<ScramClient>(*credentials_.scram_keys);
  else
    return login_failed("wrong password type");
  step_ = SaslStep::Started;
  const std::string first = scram_->first();
  MessageWriter m(out, 'p');
  m->cstring(kScramMechanism);
  m->u32(static_cast<std::uint32_t>(first.size()));
  m->text(first);
  return false;
}

}  // namespace lokadb
