#include "proto/scram.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/random.h"
#include "proto/crypto.h"
#include "proto/scram_keys.h"

namespace lokadb {

namespace {

// Reads "a=value,b=value,...". Like MessageReader it stays failed after the first surprise.
class AttributeReader {
 public:
  explicit AttributeReader(std::string_view message) : rest_(message), failed_(message.find('\0') != message.npos) {}

  bool next_is(char name) const { return more_ && rest_.size() >= 2 && rest_[0] == name && rest_[1] == '='; }
  // Value of the next attribute, which must have this name.
  std::string_view value(char name) {
    if (!next_is(name)) failed_ = true;
    return failed_ ? std::string_view{} : take();
  }
  // Extensions are optional for the receiver: any attribute that is not `last`.
  void skip_extensions(char last = '\0') {
    while (!failed_ && more_ && !next_is(last)) {
      bool is_letter = !rest_.empty() && ((rest_[0] >= 'a' && rest_[0] <= 'z') || (rest_[0] >= 'A' && rest_[0] <= 'Z'));
      if (!is_letter || !next_is(rest_[0])) failed_ = true;
      if (!failed_) take();
    }
  }
  // Everything is read, and nothing was wrong.
  bool finished() const { return !failed_ && !more_; }

 private:
  std::string_view take() {
    std::size_t comma = rest_.find(',');
    std::string_view value = rest_.substr(2, comma == rest_.npos ? comma : comma - 2);
    more_ = comma != rest_.npos;
    rest_.remove_prefix(more_ ? comma + 1 : rest_.size());
    return value;
  }

  std::string_view rest_;
  bool more_ = true;  // a comma promises another attribute
  bool failed_;
};

bool is_nonce(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f && c != ','; });
}

ScramKey operator^(const ScramKey& a, const ScramKey& b) {
  ScramKey out;
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), std::bit_xor<>());
  return out;
}

Error client_fault(std::string_view what) {
  return fatal("SASL authentication failed", "malformed SCRAM message from client: " + std::string(what));
}

Error server_fault(std::string_view what) {
  return fatal("server login failed: malformed SASL message",
               "malformed SCRAM message from server: " + std::string(what));
}

// What the server says about a failure, fit for a log: short, printable.
std::string quote(std::string_view text) {
  std::string out(text.substr(0, 100));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + out + "\"";
}

}  // namespace

std::string scram_nonce() {
  std::array<std::byte, 18> bytes;
  random_bytes(bytes);
  return base64_encode(bytes);
}

ScramServer::ScramServer(const ScramVerifier& verifier, std::string nonce)
    : verifier_(verifier), nonce_(std::move(nonce)) {}

Result<std::string> ScramServer::first(std::string_view message) {
  if (!gs2_header_.empty()) return client_fault("second client-first message");
  if (message.starts_with("p=")) return client_fault("channel binding is required, which was not offered");
  if (!message.starts_with("n,") && !message.starts_with("y,")) return client_fault("unknown channel binding flag");
  if (!message.substr(2).starts_with(',')) return client_fault("authorization identities are not supported");
  std::string_view bare = message.substr(3);
  if (bare.starts_with("m=")) return client_fault("mandatory extensions are not supported");

  AttributeReader reader(bare);
  reader.value('n');  // PostgreSQL goes by the user of the startup message, and so do we
  std::string_view client_nonce = reader.value('r');
  reader.skip_extensions();
  if (!reader.finished()) return client_fault("attributes of client-first");
  if (!is_nonce(client_nonce)) return client_fault("nonce of client-first");

  gs2_header_ = message.substr(0, 3);
  client_first_bare_ = bare;
  nonce_.insert(0, client_nonce);
  server_first_ =
      "r=" + nonce_ + ",s=" + base64_encode(as_bytes(verifier_.salt)) + ",i=" + std::to_string(verifier_.iterations);
  return server_first_;
}

Result<std::string> ScramServer::final(std::string_view message) {
  if (server_first_.empty()) return client_fault("client-final message out of turn");
  std::string auth_message = client_first_bare_ + ',' + server_first_ + ',';
  server_first_.clear();  // one attempt

  AttributeReader reader(message);
  std::string_view binding = reader.value('c');
  std::string_view nonce = reader.value('r');
  reader.skip_extensions('p');
  std::string_view proof_text = reader.value('p');
  if (!reader.finished()) return client_fault("attributes of client-final");
  if (binding != base64_encode(as_bytes(gs2_header_))) return client_fault("channel binding differs from client-first");
  if (!equal_in_constant_time(as_bytes(nonce), as_bytes(nonce_))) return client_fault("nonce differs from ours");
  std::optional<ScramKey> proof = decode_scram_key(proof_text);
  if (!proof) return client_fault("proof of client-final");
  auth_message += message.substr(0, message.size() - proof_text.size() - 3);  // without ",p=..."

  ScramKey client_key = *proof ^ hmac_sha256(verifier_.stored_key, auth_message);
  if (!equal_in_constant_time(sha256(client_key), verifier_.stored_key))
    return Error{sqlstate::kInvalidPassword, Severity::Fatal, "SASL authentication failed", {}};
  keys_ = {client_key, verifier_.server_key};
  return "v=" + base64_encode(hmac_sha256(verifier_.server_key, auth_message));
}

ScramClient::ScramClient(std::string password, std::string nonce)
    : password_(std::move(password)), nonce_(std::move(nonce)) {}

ScramClient::ScramClient(const ScramKeys& keys, std::string nonce) : keys_(keys), nonce_(std::move(nonce)) {}

std::string ScramClient::first() {
  client_first_bare_ = "n=,r=" + nonce_;
  return "n,," + client_first_bare_;
}

Result<std::string> ScramClient::final(std::string_view server_first) {
  if (client_first_bare_.empty()) return server_fault("server-first message out of turn");
  std::string client_first_bare = std::exchange(client_first_bare_, {});

  AttributeReader reader(server_first);
  std::string_view nonce = reader.value('r');
  std::string_view salt_text = reader.value('s');
  std::string_view iterations_text = reader.value('i');
  if (!reader.finished()) return server_fault("attributes of server-first");
  if (!is_nonce(nonce) || !nonce.starts_with(nonce_) || nonce.size() == nonce_.size())
    return server_fault("nonce of server-first");
  std::optional<std::string> salt = base64_decode(salt_text);
  if (!salt || salt->empty()) return server_fault("salt of server-first");
  std::optional<std::uint32_t> iterations = parse_scram_iterations(iterations_text);
  if (!iterations) return server_fault("iteration count of server-first");

  if (password_) keys_ = derive_scram_keys(*password_, *salt, *iterations).keys;
  std::string without_proof = "c=biws,r=" + std::string(nonce);  // biws: "n,,"
  auth_message_ = client_first_bare + ',' + std::string(server_first) + ',' + without_proof;
  ScramKey signature = hmac_sha256(sha256(keys_.client_key), auth_message_);
  return without_proof + ",p=" + base64_encode(keys_.client_key ^ signature);
}

Result<Done> ScramClient::verify(std::string_view server_final) {
  // An early message must not be checked against the signature of nothing.
  if (auth_message_.empty()) return server_fault("server-final message out of turn");
  std::string auth_message = std::exchange(auth_message_, {});

  AttributeReader reader(server_final);
  if (reader.next_is('e'))
    return fatal("server login failed: SASL authentication failed",
                 "server ended the SCRAM exchange with error " + quote(server_final.substr(2)));
  std::string_view signature_text = reader.value('v');
  reader.skip_extensions();
  std::optional<ScramKey> signature = decode_scram_key(signature_text);
  if (!reader.finished() || !signature) return server_fault("server-final");
  if (!equal_in_constant_time(*signature, hmac_sha256(keys_.server_key, auth_message)))
    return fatal("server login failed: invalid server signature");
  return Done{};
}

}  // namespace lokadb
