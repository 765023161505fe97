#include "auth/client_auth.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <array>

#include "base/random.h"
#include "proto/message.h"

namespace lokadb {

namespace {

// Authentication request codes (manual, "Message Formats").
constexpr std::uint32_t kCleartextPassword = 3, kMd5Password = 5, kSasl = 10, kSaslContinue = 11, kSaslFinal = 12;
constexpr std::string_view kScramMechanism = "SCRAM-SHA-256";

Error refused(std::string text, std::string log = {}) {
  return {sqlstate::kInvalidPassword, Severity::Fatal, std::move(text), std::move(log)};
}
Error bad_password() { return refused("password authentication failed"); }
Error bad_sasl(std::string log = {}) { return refused("SASL authentication failed", std::move(log)); }

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_text(std::size_t n) {
  std::string s(n, '\0');
  random_bytes(std::as_writable_bytes(std::span(s)));
  return s;
}

// For secrets without a salt of their own: made up and plain ones alike. The same for every login of a name in this
// process, so that probing does not tell them apart.
std::string salt_for(std::string_view user) {
  static const std::string key = random_text(32);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(user.data()),
       user.size(), mac.data(), &size);
  return {reinterpret_cast<const char*>(mac.data()), 16};
}

ScramVerifier mock_verifier(std::string_view user, int iterations) {
  ScramVerifier v;
  v.iterations = static_cast<std::uint32_t>(iterations);
  v.salt = salt_for(user);
  random_bytes(v.stored_key);
  random_bytes(v.server_key);
  return v;
}

}  // namespace

ClientAuth::ClientAuth(const ClientAuthInput& input)
    : type_(input.type),
      user_(input.user),
      user_is_known_(input.secret != nullptr),
      secret_(input.secret != nullptr ? *input.secret : std::string()),
      kind_(kind_of_secret(secret_)),
      iterations_(input.scram_iterations),
      method_(choose_method()) {
  if (input.known_verifier != nullptr) known_verifier_ = *input.known_verifier;
}

ClientAuth::Method ClientAuth::choose_method() const {
  switch (type_) {
    case AuthType::Any:
    case AuthType::Trust:
      return Method::None;
    case AuthType::Plain:
      return Method::Cleartext;
    case AuthType::Md5:
      return kind_ == SecretKind::Scram ? Method::Scram : Method::Md5;
    default:
      return Method::Scram;
  }
}

Result<AuthStep> ClientAuth::begin(ByteBuffer& out) {
  switch (method_) {
    case Method::None:
      if (type_ == AuthType::Trust && !user_is_known_)
        return Error{sqlstate::kInvalidAuthorization, Severity::Fatal, "\"trust\" authentication failed", {}};
      return AuthStep::Done;
    case Method::Cleartext: {
      MessageWriter m(out, 'R');
      m->u32(kCleartextPassword);
      return AuthStep::More;
    }
    case Method::Md5: {
      md5_salt_ = random_text(4);
      MessageWriter m(out, 'R');
      m->u32(kMd5Password);
      m->text(md5_salt_);
      return AuthStep::More;
    }
    case Method::Scram: {
      MessageWriter m(out, 'R');
      m->u32(kSasl);
      m->cstring(kScramMechanism);
      m->u8(0);
      return AuthStep::More;
    }
  }
  return bad_password();
}

Result<AuthStep> ClientAuth::on_message(Bytes body, ByteBuffer& out) {
  if (method_ == Method::Scram) return scram_ == nullptr ? sasl_first(body, out) : sasl_final(body, out);
  MessageReader reader(body);
  std::string_view password = reader.cstring();
  if (!reader.finished()) return fatal("broken PasswordMessage packet");
  if (password.empty()) return refused("empty password returned by client");
  return method_ == Method::Cleartext ? check_cleartext(password) : check_md5(password);
}

Result<AuthStep> ClientAuth::check_cleartext(std::string_view password) {
  switch (kind_) {
    case SecretKind::Empty:
      return bad_password();
    case SecretKind::Plain:
      if (equal_secrets(password, secret_)) return AuthStep::Done;
      return bad_password();
    case SecretKind::Md5:
      if (equal_secrets(md5_secret(password, user_), secret_)) return AuthStep::Done;
      return bad_password();
    case SecretKind::Scram: {
      auto verifier = parse_scram_verifier(secret_);
      if (!verifier) return bad_password();
      ScramVerifier tried = make_scram_verifier(password, verifier->salt, verifier->iterations);
      if (CRYPTO_memcmp(tried.stored_key.data(), verifier->stored_key.data(), tried.stored_key.size()) == 0)
        return AuthStep::Done;
      return bad_password();
    }
  }
  return bad_password();
}

Result<AuthStep> ClientAuth::check_md5(std::string_view response) {
  if (kind_ == SecretKind::Empty) return bad_password();
  std::string stored = kind_ == SecretKind::Md5 ? secret_ : md5_secret(secret_, user_);
  if (equal_secrets(response, md5_response(stored, md5_salt_))) return AuthStep::Done;
  return bad_password();
}

ScramVerifier ClientAuth::verifier_for_exchange() {
  if (kind_ == SecretKind::Scram) {
    if (auto verifier = parse_scram_verifier(secret_)) return *verifier;
  } else if (kind_ == SecretKind::Plain) {
    if (known_verifier_) return *known_verifier_;
    made_ = make_scram_verifier(secret_, salt_for(user_), static_cast<std::uint32_t>(iterations_));
    return *made_;
  }
  is_mock_ = true;
  return mock_verifier(user_, iterations_);
}

Result<AuthStep> ClientAuth::sasl_first(Bytes body, ByteBuffer& out) {
  MessageReader reader(body);
  std::string_view mechanism = reader.cstring();
  std::uint32_t size = reader.u32();
  Bytes response = size == 0xffffffff ? Bytes() : reader.take(size);
  if (!reader.finished()) return fatal("broken SASLInitialResponse packet");
  if (mechanism != kScramMechanism) return fatal("client selected an invalid SASL authentication mechanism");
  scram_ = std::make_unique<ScramServer>(verifier_for_exchange());
  auto answer = scram_->first(as_text(response));
  if (!answer) return answer.error();
  MessageWriter m(out, 'R');
  m->u32(kSaslContinue);
  m->text(*answer);
  return AuthStep::More;
}

Result<AuthStep> ClientAuth::sasl_final(Bytes body, ByteBuffer& out) {
  auto answer = scram_->final(as_text(body));
  // What is malformed is told to everybody; for the rest all failures look the same.
  if (!answer && answer.error().state != sqlstate::kInvalidPassword) return answer.error();
  if (kind_ == SecretKind::Md5) return bad_sasl("SCRAM authentication failed: user has MD5 secret");
  if (is_mock_) return bad_sasl();
  if (!answer) return answer.error();
  if (kind_ == SecretKind::Scram) captured_ = scram_->keys();
  MessageWriter m(out, 'R');
  m->u32(kSaslFinal);
  m->text(*answer);
  return AuthStep::Done;
}

}  // namespace lokadb
