// Logins of every kind, the two ends of the proxy against each other.
#include "auth/client_auth.h"

#include <set>

#include "auth/support.h"

namespace lokadb {
namespace {

using namespace auth_test;
using namespace std::string_view_literals;

constexpr std::uint32_t kCleartext = 3, kMd5Request = 5, kSasl = 10, kContinue = 11, kFinal = 12;
constexpr SecretKind kKinds[] = {SecretKind::Empty, SecretKind::Plain, SecretKind::Md5, SecretKind::Scram};

ClientAuth door_for(AuthType type, const std::string* secret, const std::string& user = kUser) {
  ClientAuthInput input;
  input.type = type;
  input.user = user;
  input.secret = secret;
  return ClientAuth(input);
}
ServerAuth client_with(const std::string& password) { return ServerAuth({kUser, password, {}}); }

Outcome log_in_with(AuthType type, const std::string* secret, const std::string& password = kPassword) {
  ClientAuth door = door_for(type, secret);
  ServerAuth client = client_with(password);
  return log_in(door, client);
}

// What the client is asked for, and whether the right password is enough.
struct Row {
  AuthType type;
  SecretKind kind;
  std::vector<std::uint32_t> requests;
  bool gets_in;
};
const Row kTable[] = {
    {AuthType::Any, SecretKind::Empty, {}, true},
    {AuthType::Any, SecretKind::Plain, {}, true},
    {AuthType::Any, SecretKind::Md5, {}, true},
    {AuthType::Any, SecretKind::Scram, {}, true},
    {AuthType::Trust, SecretKind::Empty, {}, true},
    {AuthType::Trust, SecretKind::Plain, {}, true},
    {AuthType::Trust, SecretKind::Md5, {}, true},
    {AuthType::Trust, SecretKind::Scram, {}, true},
    {AuthType::Plain, SecretKind::Empty, {kCleartext}, false},
    {AuthType::Plain, SecretKind::Plain, {kCleartext}, true},
    {AuthType::Plain, SecretKind::Md5, {kCleartext}, true},
    {AuthType::Plain, SecretKind::Scram, {kCleartext}, true},
    {AuthType::Md5, SecretKind::Empty, {kMd5Request}, false},
    {AuthType::Md5, SecretKind::Plain, {kMd5Request}, true},
    {AuthType::Md5, SecretKind::Md5, {kMd5Request}, true},
    {AuthType::Md5, SecretKind::Scram, {kSasl, kContinue, kFinal}, true},
    {AuthType::Scram, SecretKind::Empty, {kSasl, kContinue}, false},
    {AuthType::Scram, SecretKind::Plain, {kSasl, kContinue, kFinal}, true},
    {AuthType::Scram, SecretKind::Md5, {kSasl, kContinue}, false},
    {AuthType::Scram, SecretKind::Scram, {kSasl, kContinue, kFinal}, true},
};

// Whoever fails is told the same, whether the user, the secret or the password was wrong.
void check_refused(const Row& row, const Outcome& outcome) {
  BOOST_TEST(!outcome.is_in);
  BOOST_TEST(outcome.code == "28P01");
  BOOST_TEST(outcome.text ==
             (row.requests.size() > 1 ? "SASL authentication failed" : "password authentication failed"));
}

BOOST_AUTO_TEST_SUITE(auth_client)

BOOST_AUTO_TEST_CASE(the_right_password_with_every_method_and_secret) {
  for (const auto& row : kTable) {
    BOOST_TEST_CONTEXT(name_of(row.type) << " with secret kind " << static_cast<int>(row.kind)) {
      std::string secret = secret_of(row.kind);
      Outcome outcome = log_in_with(row.type, &secret);
      BOOST_TEST(outcome.requests == row.requests, boost::test_tools::per_element());
      BOOST_TEST(outcome.client_error == "");
      if (row.gets_in)
        BOOST_TEST(outcome.is_in);
      else
        check_refused(row, outcome);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_password_with_every_method_and_secret) {
  for (const auto& row : kTable) {
    if (row.requests.empty()) continue;  // nobody asks for it
    for (const std::string wrong : {"S3cret", "s3cre", "s3cret ", "x"}) {
      BOOST_TEST_CONTEXT(name_of(row.type) << " with secret kind " << static_cast<int>(row.kind) << ": " << wrong) {
        std::string secret = secret_of(row.kind);
        check_refused(row, log_in_with(row.type, &secret, wrong));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_user_is_asked_like_a_known_one) {
  struct {
    AuthType type;
    std::vector<std::uint32_t> requests;
    std::string text;
  } const table[] = {
      {AuthType::Plain, {kCleartext}, "password authentication failed"},
      {AuthType::Md5, {kMd5Request}, "password authentication failed"},
      {AuthType::Scram, {kSasl, kContinue}, "SASL authentication failed"},
  };
  for (const auto& row : table) {
    for (const std::string& password : {kPassword, std::string("x")}) {
      Outcome outcome = log_in_with(row.type, nullptr, password);
      BOOST_TEST(!outcome.is_in);
      BOOST_TEST(outcome.requests == row.requests, boost::test_tools::per_element());
      BOOST_TEST(outcome.code == "28P01");
      BOOST_TEST(outcome.text == row.text);
    }
  }
}

BOOST_AUTO_TEST_CASE(trust_takes_known_users_only) {
  Outcome outcome = log_in_with(AuthType::Trust, nullptr);
  BOOST_TEST(!outcome.is_in);
  BOOST_TEST(outcome.code == "28000");
  BOOST_TEST(outcome.text == "\"trust\" authentication failed");
  BOOST_TEST(log_in_with(AuthType::Any, nullptr).is_in);
}

BOOST_AUTO_TEST_CASE(the_log_tells_of_md5_secrets_that_scram_cannot_use) {
  std::string secret = secret_of(SecretKind::Md5);
  BOOST_TEST(log_in_with(AuthType::Scram, &secret).log == "SCRAM authentication failed: user has MD5 secret");
}

// --- single messages ---

std::string sasl_initial(std::string_view mechanism, std::string_view response) {
  ByteBuffer body;
  body.cstring(mechanism);
  body.u32(static_cast<std::uint32_t>(response.size()));
  body.text(response);
  return std::string(as_text(body.bytes()));
}

struct Door {
  std::string secret;
  ClientAuth auth;
  ByteBuffer out;
  Door(AuthType type, SecretKind kind) : secret(secret_of(kind)), auth(door_for(type, &secret)) {
    BOOST_REQUIRE(bool(auth.begin(out)));
  }
  Outcome say(std::string_view body) {
    auto step = auth.on_message(as_bytes(body), out);
    if (!step) return refused(step.error(), {});
    Outcome outcome;
    outcome.is_in = *step == AuthStep::Done;
    return outcome;
  }
};

BOOST_AUTO_TEST_CASE(an_empty_password_is_named) {
  for (auto type : {AuthType::Plain, AuthType::Md5}) {
    for (auto kind : kKinds) {
      if (type == AuthType::Md5 && kind == SecretKind::Scram) continue;
      Outcome outcome = Door(type, kind).say("\0"sv);
      BOOST_TEST(outcome.code == "28P01");
      BOOST_TEST(outcome.text == "empty password returned by client");
    }
  }
}

BOOST_AUTO_TEST_CASE(broken_password_messages_are_protocol_violations) {
  for (auto type : {AuthType::Plain, AuthType::Md5}) {
    for (auto body : {""sv, "s3cret"sv, "s3cret\0x"sv, "s3cret\0\0"sv}) {
      Outcome outcome = Door(type, SecretKind::Plain).say(body);
      BOOST_TEST(outcome.code == "08P01");
      BOOST_TEST(outcome.text == "broken PasswordMessage packet");
    }
  }
}

// Who has stolen a verifier or a hash cannot use it as a password.
BOOST_AUTO_TEST_CASE(a_stored_secret_is_no_password) {
  for (auto kind : {SecretKind::Md5, SecretKind::Scram}) {
    Door door(AuthType::Plain, kind);
    BOOST_TEST(door.say(door.secret + '\0').text == "password authentication failed");
  }
  Door door(AuthType::Md5, SecretKind::Md5);
  BOOST_TEST(door.say(door.secret + '\0').text == "password authentication failed");
}

BOOST_AUTO_TEST_CASE(scram_is_the_only_mechanism) {
  Door door(AuthType::Scram, SecretKind::Plain);
  BOOST_TEST(as_text(door.out.bytes()) == "R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"sv);
  for (auto name : {"SCRAM-SHA-256-PLUS", "PLAIN", "scram-sha-256", ""}) {
    Outcome outcome = Door(AuthType::Scram, SecretKind::Plain).say(sasl_initial(name, "n,,n=,r=abc"));
    BOOST_TEST(outcome.code == "08P01");
    BOOST_TEST(outcome.text == "client selected an invalid SASL authentication mechanism");
  }
}

BOOST_AUTO_TEST_CASE(broken_first_sasl_messages) {
  std::string whole = sasl_initial("SCRAM-SHA-256", "n,,n=,r=0123456789abcdef");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Outcome outcome = Door(AuthType::Scram, SecretKind::Plain).say(std::string_view(whole).substr(0, size));
    BOOST_TEST(outcome.code == "08P01");
    BOOST_TEST(outcome.text == "broken SASLInitialResponse packet");
  }
  BOOST_TEST(Door(AuthType::Scram, SecretKind::Plain).say(whole + "x").text == "broken SASLInitialResponse packet");
  Door good(AuthType::Scram, SecretKind::Plain);
  BOOST_TEST(good.say(whole).code == "");
}

BOOST_AUTO_TEST_CASE(a_first_sasl_message_without_a_response_is_refused) {
  ByteBuffer body;
  body.cstring("SCRAM-SHA-256");
  body.u32(0xffffffff);
  Outcome outcome = Door(AuthType::Scram, SecretKind::Plain).say(as_text(body.bytes()));
  BOOST_TEST(!outcome.is_in);
  BOOST_TEST(outcome.code == "08P01");
}

BOOST_AUTO_TEST_CASE(nonsense_in_the_exchange_never_gets_in) {
  for (auto first : {"", "x", "n,,", "n,,n=,r=", "p=tls-unique,,n=,r=abc", "n,a=bob,n=,r=abc", "n,,m=x,n=,r=abc"}) {
    Outcome outcome = Door(AuthType::Scram, SecretKind::Plain).say(sasl_initial("SCRAM-SHA-256", first));
    BOOST_TEST(!outcome.is_in);
    BOOST_TEST(outcome.code == "08P01", first);
  }
  for (auto final : {"", "c=biws", "c=biws,r=abc,p=AAAA", "x"}) {
    Door door(AuthType::Scram, SecretKind::Plain);
    door.say(sasl_initial("SCRAM-SHA-256", "n,,n=,r=0123456789abcdef"));
    BOOST_TEST(!door.say(final).is_in);
  }
}

BOOST_AUTO_TEST_CASE(an_exchange_is_not_continued_after_its_end) {
  std::string secret = secret_of(SecretKind::Plain);
  ClientAuth door = door_for(AuthType::Scram, &secret);
  ServerAuth client = client_with(kPassword);
  BOOST_REQUIRE(log_in(door, client).is_in);
  ByteBuffer out;
  BOOST_TEST(!door.on_message(as_bytes("c=biws,r=abc,p=AAAA"), out));
}

// --- what an unknown user can learn ---

std::string salt_shown(const std::string& user, const std::string* secret) {
  ClientAuth door = door_for(AuthType::Scram, secret, user);
  ByteBuffer out;
  BOOST_REQUIRE(bool(door.begin(out)));
  out.clear();
  std::string first = sasl_initial("SCRAM-SHA-256", "n,,n=,r=0123456789abcdef");
  BOOST_REQUIRE(bool(door.on_message(as_bytes(first), out)));
  std::string body = take_body(out, 'R').substr(4);
  auto at = body.find(",s="), end = body.find(",i=");
  BOOST_REQUIRE((at != body.npos && end != body.npos));
  BOOST_TEST(body.substr(end) == ",i=4096");
  return body.substr(at + 3, end - at - 3);
}

BOOST_AUTO_TEST_CASE(a_made_up_salt_looks_real_and_stays) {
  std::string salt = salt_shown("nobody", nullptr);
  BOOST_TEST(salt.size() == 24u);  // 16 bytes
  BOOST_TEST(salt_shown("nobody", nullptr) == salt);
  BOOST_TEST(salt_shown("somebody", nullptr) != salt);
  std::string md5 = secret_of(SecretKind::Md5);
  BOOST_TEST(salt_shown("nobody", &md5) == salt);
  std::string plain = secret_of(SecretKind::Plain);
  BOOST_TEST(salt_shown("nobody", &plain) == salt);
}

// How a login ends that answers the challenge with `final`, its code, text and line for the log.
std::string end_of_login(const std::string* secret, const std::string& final) {
  ClientAuth door = door_for(AuthType::Scram, secret, "nobody");
  ByteBuffer out;
  BOOST_REQUIRE(bool(door.begin(out)));
  std::string first = sasl_initial("SCRAM-SHA-256", "n,,n=,r=0123456789abcdef");
  BOOST_REQUIRE(bool(door.on_message(as_bytes(first), out)));
  auto step = door.on_message(as_bytes(final), out);
  BOOST_REQUIRE(!step);
  return std::string(step.error().state.text()) + " " + step.error().to_client;
}

BOOST_AUTO_TEST_CASE(malformed_answers_tell_nothing_of_the_user) {
  for (auto final : {"", "x", "c=biws", "c=biws,r=abc,p=AAAA", "c=biws,r=0123456789abcdef,p=AAAA"}) {
    std::string expected = end_of_login(nullptr, final);
    for (SecretKind kind : kKinds) {
      std::string secret = secret_of(kind);
      BOOST_TEST(end_of_login(&secret, final) == expected, final);
    }
  }
}

BOOST_AUTO_TEST_CASE(md5_salts_differ_from_login_to_login) {
  std::set<std::string> salts;
  for (int i = 0; i < 20; ++i) {
    Door door(AuthType::Md5, SecretKind::Plain);
    std::string body = take_body(door.out, 'R');
    BOOST_TEST(body.size() == 8u);
    salts.insert(body.substr(4));
  }
  BOOST_TEST(salts.size() == 20u);
}

// --- what a login leaves behind ---

BOOST_AUTO_TEST_CASE(keys_captured_from_a_client_log_in_elsewhere) {
  std::string secret = secret_of(SecretKind::Scram);
  for (auto type : {AuthType::Scram, AuthType::Md5}) {
    ClientAuth door = door_for(type, &secret);
    ServerAuth client = client_with(kPassword);
    BOOST_TEST(!door.captured_keys().has_value());
    BOOST_REQUIRE(log_in(door, client).is_in);
    BOOST_REQUIRE(door.captured_keys().has_value());
    ClientAuth elsewhere = door_for(AuthType::Scram, &secret);
    ServerAuth us({kUser, secret, door.captured_keys()});
    BOOST_TEST(log_in(elsewhere, us).is_in);
    // Of another salt the keys are worth nothing.
    std::string other = to_text(make_scram_verifier(kPassword, "another salt ...", 4096));
    ClientAuth third = door_for(AuthType::Scram, &other);
    ServerAuth again({kUser, secret, door.captured_keys()});
    BOOST_TEST(!log_in(third, again).is_in);
  }
}

BOOST_AUTO_TEST_CASE(other_logins_capture_nothing) {
  for (auto type : {AuthType::Trust, AuthType::Plain, AuthType::Md5, AuthType::Scram}) {
    std::string secret = secret_of(SecretKind::Plain);
    ClientAuth door = door_for(type, &secret);
    ServerAuth client = client_with(kPassword);
    BOOST_REQUIRE(log_in(door, client).is_in);
    BOOST_TEST(!door.captured_keys().has_value());
  }
  std::string secret = secret_of(SecretKind::Scram);
  ClientAuth door = door_for(AuthType::Scram, &secret);
  ServerAuth client = client_with("wrong");
  BOOST_TEST(!log_in(door, client).is_in);
  BOOST_TEST(!door.captured_keys().has_value());
}

BOOST_AUTO_TEST_CASE(a_verifier_made_from_a_plain_secret_serves_later_logins) {
  std::string secret = kPassword;
  ClientAuth door = door_for(AuthType::Scram, &secret);
  ServerAuth client = client_with(kPassword);
  BOOST_REQUIRE(log_in(door, client).is_in);
  BOOST_REQUIRE(door.made_verifier().has_value());
  BOOST_TEST(door.made_verifier()->iterations == 4096u);

  ClientAuthInput input{AuthType::Scram, kUser, &secret, &*door.made_verifier(), 4096};
  ClientAuth second(input);
  ServerAuth again = client_with(kPassword), wrong = client_with("x");
  BOOST_TEST(log_in(second, again).is_in);
  BOOST_TEST(!second.made_verifier().has_value());
  ClientAuth third(input);
  BOOST_TEST(!log_in(third, wrong).is_in);
}

BOOST_AUTO_TEST_CASE(iterations_are_those_of_the_options) {
  std::string secret = kPassword;
  ClientAuth door(ClientAuthInput{AuthType::Scram, kUser, &secret, nullptr, 7});
  ServerAuth client = client_with(kPassword);
  BOOST_TEST(log_in(door, client).is_in);
  BOOST_TEST(door.made_verifier()->iterations == 7u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
