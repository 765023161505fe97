// Answers to a server's requests, and servers that do not play by the rules.
#include "auth/server_auth.h"

#include "auth/support.h"

namespace lokadb {
namespace {

using namespace auth_test;
using namespace std::string_view_literals;

std::string request(std::uint32_t code, std::string_view rest = {}) {
  ByteBuffer body;
  body.u32(code);
  body.text(rest);
  return std::string(as_text(body.bytes()));
}
constexpr auto kScramOnly = "SCRAM-SHA-256\0\0"sv;

struct Server {
  ServerAuth auth;
  ByteBuffer out;
  explicit Server(const std::string& secret, std::optional<ScramKeys> keys = {})
      : auth({kUser, secret, std::move(keys)}) {}

  // "" and an answer in `out`, "ok", or the error.
  std::string ask(const std::string& body) {
    out.clear();
    auto result = auth.on_request(as_bytes(body), out);
    if (result) return *result ? "ok" : "";
    BOOST_CHECK(result.error().severity == Severity::Fatal);
    BOOST_TEST(out.empty());
    std::string text = result.error().to_client;
    BOOST_TEST(text.starts_with("server login failed: "));
    return text.substr(text.find(": ") + 2);
  }
  std::string answer() { return take_body(out, 'p'); }
};

BOOST_AUTO_TEST_SUITE(auth_server)

BOOST_AUTO_TEST_CASE(a_server_that_trusts_us) {
  for (auto kind : {SecretKind::Empty, SecretKind::Plain, SecretKind::Md5, SecretKind::Scram}) {
    Server server(secret_of(kind));
    BOOST_TEST(server.ask(request(0)) == "ok");
    BOOST_TEST(server.out.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_password_in_clear_text_needs_a_plain_secret) {
  Server server(kPassword);
  BOOST_TEST(server.ask(request(3)) == "");
  BOOST_TEST(server.answer() == "s3cret\0"sv);
  BOOST_TEST(server.ask(request(0)) == "ok");
  for (auto kind : {SecretKind::Empty, SecretKind::Md5, SecretKind::Scram})
    BOOST_TEST(Server(secret_of(kind)).ask(request(3)) == "wrong password type");
}

BOOST_AUTO_TEST_CASE(md5_needs_a_plain_or_md5_secret) {
  for (auto kind : {SecretKind::Plain, SecretKind::Md5}) {
    Server server(secret_of(kind));
    BOOST_TEST(server.ask(request(5, "salt")) == "");
    BOOST_TEST(server.answer() == md5_response(md5_secret(kPassword, kUser), "salt") + '\0');
  }
  for (auto kind : {SecretKind::Empty, SecretKind::Scram})
    BOOST_TEST(Server(secret_of(kind)).ask(request(5, "salt")) == "wrong password type");
  for (auto salt : {"", "sal", "salty"})
    BOOST_TEST(Server(kPassword).ask(request(5, salt)) == "broken authentication request");
}

BOOST_AUTO_TEST_CASE(scram_needs_a_plain_secret_or_captured_keys) {
  BOOST_TEST(Server(kPassword).ask(request(10, kScramOnly)) == "");
  BOOST_TEST(Server(secret_of(SecretKind::Scram), ScramKeys{}).ask(request(10, kScramOnly)) == "");
  for (auto kind : {SecretKind::Empty, SecretKind::Md5, SecretKind::Scram})
    BOOST_TEST(Server(secret_of(kind)).ask(request(10, kScramOnly)) == "wrong password type");
}

BOOST_AUTO_TEST_CASE(scram_is_found_among_the_mechanisms) {
  for (auto list : {kScramOnly, "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"sv, "SCRAM-SHA-256\0OTHER\0\0"sv}) {
    Server server(kPassword);
    BOOST_TEST(server.ask(request(10, list)) == "");
    std::string answer = server.answer();
    BOOST_TEST(answer.starts_with("SCRAM-SHA-256\0"sv));
    BOOST_TEST(load_u32(as_bytes(answer).data() + 14) == answer.size() - 18);
    BOOST_TEST(answer.substr(18).starts_with("n,,n="));
  }
  for (auto list : {""sv, "\0"sv, "SCRAM-SHA-256-PLUS\0\0"sv, "OTHER\0"sv, "SCRAM-SHA-256"sv})
    BOOST_TEST(Server(kPassword).ask(request(10, list)) ==
               "none of the server's SASL authentication mechanisms are supported");
}

BOOST_AUTO_TEST_CASE(unknown_methods_are_named) {
  for (std::uint32_t code : {2u, 6u, 7u, 8u, 9u, 99u})
    BOOST_TEST(Server(kPassword).ask(request(code)) == "unknown/unsupported auth method: " + std::to_string(code));
}

BOOST_AUTO_TEST_CASE(short_requests_are_broken) {
  for (auto body : {""sv, "\0"sv, "\0\0\0"sv})
    BOOST_TEST(Server(kPassword).ask(std::string(body)) == "broken authentication request");
}

// A server must prove that it knows the password, too, once it has begun to ask for ours this way.
BOOST_AUTO_TEST_CASE(a_server_cannot_leave_out_its_proof) {
  Server started(kPassword);
  BOOST_TEST(started.ask(request(10, kScramOnly)) == "");
  BOOST_TEST(started.ask(request(0)) == "unexpected AuthenticationOk");

  Server answered(kPassword);
  ClientAuthInput input;
  input.type = AuthType::Scram;
  input.user = kUser;
  input.secret = &kPassword;
  ClientAuth door(input);
  ByteBuffer out;
  BOOST_REQUIRE(bool(door.begin(out)));
  BOOST_TEST(answered.ask(take_body(out, 'R')) == "");
  std::string first = answered.answer();
  BOOST_REQUIRE(bool(door.on_message(as_bytes(first), out)));
  BOOST_TEST(answered.ask(take_body(out, 'R')) == "");
  BOOST_TEST(answered.ask(request(0)) == "unexpected AuthenticationOk");
}

BOOST_AUTO_TEST_CASE(a_wrong_proof_of_the_server_is_refused) {
  ClientAuthInput input;
  input.type = AuthType::Scram;
  input.user = kUser;
  input.secret = &kPassword;
  ClientAuth door(input);
  Server server(kPassword);
  ByteBuffer out;
  BOOST_REQUIRE(bool(door.begin(out)));
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(server.ask(take_body(out, 'R')) == "");
    std::string answer = server.answer();
    BOOST_REQUIRE(bool(door.on_message(as_bytes(answer), out)));
  }
  std::string proof = take_body(out, 'R');
  std::string forged = proof;
  auto& letter = forged[6];  // behind the code and "v="
  letter = letter == 'A' ? 'B' : 'A';
  BOOST_TEST(server.ask(forged) != "");
  BOOST_TEST(server.ask(request(0)) == "unexpected AuthenticationOk");
}

BOOST_AUTO_TEST_CASE(sasl_messages_come_in_their_order_only) {
  for (std::uint32_t code : {11u, 12u})
    BOOST_TEST(Server(kPassword).ask(request(code, "r=x,s=eA==,i=1")) == "unexpected SASL message");
  Server server(kPassword);
  BOOST_TEST(server.ask(request(10, kScramOnly)) == "");
  BOOST_TEST(server.ask(request(12, "v=AAAA")) == "unexpected SASL message");
  BOOST_TEST(server.ask(request(10, kScramOnly)) == "unexpected SASL message");
}

BOOST_AUTO_TEST_CASE(nonsense_from_the_server_is_refused) {
  for (auto text : {"", "x", "r=x,s=eA==,i=4096", "r=,s=,i=0"}) {
    Server server(kPassword);
    BOOST_TEST(server.ask(request(10, kScramOnly)) == "");
    BOOST_TEST(server.ask(request(11, text)) != "");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
