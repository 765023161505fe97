// SCRAM messages and secrets. Input: a letter that says what the rest is
//   c  client-first, a line feed, client-final      s  server-first, a line feed, server-final
//   v  a secret                                     p  a password
// Client keys instead of passwords, and one iteration: deriving keys would take all the time.
#include "proto/scram.h"

#include <cstdlib>

#include "base/bytes.h"
#include "proto/crypto.h"
#include "proto/saslprep.h"

using namespace lokadb;

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

const ScramVerifier& verifier() {
  static const ScramVerifier made = make_scram_verifier("secret", "salt", 1);
  return made;
}

struct Lines {
  std::string_view first, second;
};
Lines split(std::string_view text) {
  std::size_t at = text.find('\n');
  return {text.substr(0, at), at == text.npos ? std::string_view{} : text.substr(at + 1)};
}

// No input can hold a valid proof: the verifier's password is unknown to the fuzzer's bytes, the nonce is not.
void check_server(Lines lines) {
  ScramServer server(verifier(), "server-nonce");
  auto answer = server.first(lines.first);
  if (answer) require(answer->find("server-nonce,s=") != answer->npos);
  auto end = server.final(lines.second);
  if (!end) return require(end.error().to_client == "SASL authentication failed");
  require(sha256(server.keys().client_key) == verifier().stored_key);
}

void check_client(Lines lines) {
  ScramClient client(ScramKeys{}, "client-nonce");
  client.first();
  auto answer = client.final(lines.first);
  if (answer) require(answer->starts_with("c=biws,r=client-nonce"));
  auto end = client.verify(lines.second);
  if (end) require(answer.operator bool());
  if (!end) require(end.error().to_client.starts_with("server login failed: "));
}

void check_secret(std::string_view text) {
  auto parsed = parse_scram_verifier(text);
  require((kind_of_secret(text) == SecretKind::Scram) == parsed.has_value());
  if (parsed) require(to_text(*parsed) == text && parsed->iterations >= 1 && !parsed->salt.empty());
  auto decoded = base64_decode(text);
  if (decoded) require(base64_encode(as_bytes(*decoded)) == text);
  require(md5_response(text, "salt").size() == 35);
}

void check_password(std::string_view text) {
  std::string prepared = saslprep(text);
  require(prepared.empty() == text.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text = as_text({reinterpret_cast<const std::byte*>(data + 1), size - 1});
  switch (data[0]) {
    case 'c':
      check_server(split(text));
      break;
    case 's':
      check_client(split(text));
      break;
    case 'v':
      check_secret(text);
      break;
    case 'p':
      check_password(text);
      break;
  }
  return 0;
}
