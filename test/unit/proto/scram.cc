#include "proto/scram.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

// A whole exchange: the sentences both sides said.
struct Exchange {
  std::string client_nonce, server_nonce;
  std::string client_first, server_first, client_final, server_final;
};

// RFC 7677, section 3: user "user", password "pencil".
const Exchange kRfc = {
    "rOprNGfwEbeRWgbNEkqO",
    "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="};
const std::string kRfcSalt = "\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";

// Overheard between psql and PostgreSQL 15.
const Exchange kPsql = {"EnqhymZKe9g+SKbPwXj3qhOE",
                        "ha94IxflsKJJQro1S8w3uoQQ",
                        "n,,n=,r=EnqhymZKe9g+SKbPwXj3qhOE",
                        "r=EnqhymZKe9g+SKbPwXj3qhOEha94IxflsKJJQro1S8w3uoQQ,s=+2zKyDsTDydsHbM88jwQlQ==,i=4096",
                        "c=biws,r=EnqhymZKe9g+SKbPwXj3qhOEha94IxflsKJJQro1S8w3uoQQ,"
                        "p=ne70nWXplTsqDhqOF/u7/q8r+6fXuPUQNTm+Dzy85kI=",
                        "v=TlaUpDhm+BIU8ETwSd2I4mcKIUCUUuJNgroZgShUvvg="};
constexpr const char* kPsqlPassword = "Tr0ub4dor&3 horse";
constexpr const char* kPsqlVerifier =
    "SCRAM-SHA-256$4096:+2zKyDsTDydsHbM88jwQlQ==$e+pIi4EGcwLEuTpHcWUbEpOAEYS8jCUb8BaF+zlOCt8=:"
    "gPbblvKozBwD1MWq2GDE1dtkcTlw7S8Z49EZl3cYmZA=";

std::string error_of(const Error& error) { return std::string(error.state.text()) + " " + error.to_client; }
template <class T>
std::string error_of(const Result<T>& result) {
  return result ? "no error" : error_of(result.error());
}

constexpr auto kWrongProof = "28P01 SASL authentication failed";
constexpr auto kMalformed = "08P01 SASL authentication failed";
constexpr auto kBadServer = "08P01 server login failed: malformed SASL message";

// A server as in the overheard exchange, and the same after client-first.
ScramServer psql_server() { return ScramServer(*parse_scram_verifier(kPsqlVerifier), kPsql.server_nonce); }
ScramServer psql_server_after_first() {
  ScramServer server = psql_server();
  BOOST_REQUIRE(server.first(kPsql.client_first));
  return server;
}
ScramClient psql_client_after_first() {
  ScramClient client(kPsqlPassword, kPsql.client_nonce);
  client.first();
  return client;
}
ScramClient psql_client_after_final() {
  ScramClient client = psql_client_after_first();
  BOOST_REQUIRE(client.final(kPsql.server_first));
  return client;
}

// What the server answers to `message`, given as client-first or client-final.
std::string first_error(std::string_view message) { return error_of(psql_server().first(message)); }
std::string final_error(std::string_view message) { return error_of(psql_server_after_first().final(message)); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  BOOST_REQUIRE(text.find(from) != text.npos);
  return text.replace(text.find(from), from.size(), to);
}

// Iterations 1 keep the exchanges of a client with a server cheap.
const ScramVerifier& cheap_verifier() {
  static const ScramVerifier verifier = make_scram_verifier("secret", "saltsaltsalt", 1);
  return verifier;
}

BOOST_AUTO_TEST_SUITE(scram)

BOOST_AUTO_TEST_CASE(server_speaks_the_exchange_of_rfc_7677) {
  ScramServer server(make_scram_verifier("pencil", kRfcSalt, 4096), kRfc.server_nonce);
  auto first = server.first(kRfc.client_first);
  BOOST_REQUIRE(first);
  BOOST_TEST(*first == kRfc.server_first);
  auto final = server.final(kRfc.client_final);
  BOOST_REQUIRE(final);
  BOOST_TEST(*final == kRfc.server_final);
}

BOOST_AUTO_TEST_CASE(server_speaks_as_postgresql) {
  ScramServer server = psql_server();
  BOOST_TEST(*server.first(kPsql.client_first) == kPsql.server_first);
  auto final = server.final(kPsql.client_final);
  BOOST_REQUIRE(final);
  BOOST_TEST(*final == kPsql.server_final);
}

BOOST_AUTO_TEST_CASE(client_speaks_as_psql) {
  ScramClient client(kPsqlPassword, kPsql.client_nonce);
  BOOST_TEST(client.first() == kPsql.client_first);
  auto final = client.final(kPsql.server_first);
  BOOST_REQUIRE(final);
  BOOST_TEST(*final == kPsql.client_final);
  BOOST_TEST(static_cast<bool>(client.verify(kPsql.server_final)));
}

BOOST_AUTO_TEST_CASE(keys_of_a_client_open_another_server_with_the_same_verifier) {
  ScramServer seen = psql_server_after_first();
  BOOST_REQUIRE(seen.final(kPsql.client_final));
  ScramServer other(*parse_scram_verifier(kPsqlVerifier));
  ScramClient client(seen.keys());
  auto server_first = other.first(client.first());
  BOOST_REQUIRE(server_first);
  auto client_final = client.final(*server_first);
  BOOST_REQUIRE(client_final);
  auto server_final = other.final(*client_final);
  BOOST_REQUIRE(server_final);
  BOOST_TEST(static_cast<bool>(client.verify(*server_final)));
}

BOOST_AUTO_TEST_CASE(nonces_are_fresh) {
  BOOST_TEST(scram_nonce().size() == 24u);
  BOOST_TEST(scram_nonce() != scram_nonce());
  ScramServer one(cheap_verifier()), two(cheap_verifier());
  BOOST_TEST(*one.first("n,,n=,r=abc") != *two.first("n,,n=,r=abc"));
  BOOST_TEST(ScramClient("x").first() != ScramClient("x").first());
}

BOOST_AUTO_TEST_CASE(a_wrong_password_is_a_wrong_proof) {
  ScramServer server(cheap_verifier());
  ScramClient client("Secret");
  auto server_first = server.first(client.first());
  auto result = server.final(*client.final(*server_first));
  BOOST_TEST(error_of(result) == kWrongProof);
  BOOST_CHECK(result.error().severity == Severity::Fatal);
}

BOOST_AUTO_TEST_CASE(a_proof_of_zeros_is_wrong) {
  BOOST_TEST(final_error("c=biws,r=" + kPsql.client_nonce + kPsql.server_nonce +
                         ",p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") == kWrongProof);
}

BOOST_AUTO_TEST_CASE(the_channel_binding_flag_may_be_y) {
  ScramServer server = psql_server();
  BOOST_REQUIRE(server.first("y,,n=,r=abc"));
  std::string rest = ",r=abc" + kPsql.server_nonce + ",p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  ScramServer other = server;
  BOOST_TEST(error_of(server.final("c=eSws" + rest)) == kWrongProof);  // as far as the proof
  BOOST_TEST(error_of(other.final("c=biws" + rest)) == kMalformed);
}

BOOST_AUTO_TEST_CASE(extensions_are_ignored) {
  BOOST_TEST(static_cast<bool>(psql_server().first(kPsql.client_first + ",x=1,Y=,z=a=b")));
  std::string extended = replaced(kPsql.client_final, ",p=", ",x=1,Y=,p=");
  BOOST_TEST(final_error(extended) == kWrongProof);  // well-formed, but signed otherwise
}

BOOST_DATA_TEST_CASE(malformed_client_first,
                     data::make({"",
                                 "n",
                                 "n,",
                                 "n,,",
                                 "n,n=,r=abc",
                                 "N,,n=,r=abc",
                                 "z,,n=,r=abc",
                                 "n=,r=abc",
                                 "p=tls-server-end-point,,n=,r=abc",
                                 "p,,n=,r=abc",
                                 "n,a=ann,n=,r=abc",
                                 "n,x,n=,r=abc",
                                 "n,,m=x,n=,r=abc",
                                 "n,,r=abc,n=",
                                 "n,,r=abc",
                                 "n,,n=",
                                 "n,,n=,r=",
                                 "n,,n=,r=a c",
                                 "n,,n=,r=abc\xc3\xa9",
                                 "n,,n=,r=abc,",
                                 "n,,n=,r=abc,,x=1",
                                 "n,,n=,r=abc,x",
                                 "n,,n=,r=abc,1=x",
                                 "n,,n=,r=abc,=",
                                 "n,,n=,x=1,r=abc",
                                 "n,,n=,r=ab\x7f",
                                 "n,,N=,r=abc",
                                 "n,, n=,r=abc"}),
                     message) {
  auto result = psql_server().first(message);
  BOOST_TEST(error_of(result) == kMalformed);
  if (!result) BOOST_TEST(result.error().to_log.starts_with("malformed SCRAM message from client: "));
}

BOOST_AUTO_TEST_CASE(zero_bytes_are_malformed) {
  BOOST_TEST(first_error(kPsql.client_first + '\0') == kMalformed);
  BOOST_TEST(first_error(replaced(kPsql.client_first, "n=", std::string("n=\0", 3))) == kMalformed);
  BOOST_TEST(final_error(kPsql.client_final + '\0') == kMalformed);
  BOOST_TEST(error_of(psql_client_after_first().final(kPsql.server_first + '\0')) == kBadServer);
  BOOST_TEST(error_of(psql_client_after_final().verify(kPsql.server_final + '\0')) == kBadServer);
}

BOOST_AUTO_TEST_CASE(malformed_client_final) {
  const std::string good = kPsql.client_final;
  BOOST_TEST(final_error("") == kMalformed);
  BOOST_TEST(final_error(replaced(good, "c=biws", "c=eSws")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "c=biws", "c=")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "c=biws,", "")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "c=biws", "c=biws,x=1")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "r=Enq", "r=enq")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "uoQQ", "uoQR")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "uoQQ", "uoQQQ")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "uoQQ", "uoQ")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, kPsql.server_nonce, "")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "kI=", "kJ=")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "kI=", "kI")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "p=ne70", "p=")) == kMalformed);
  BOOST_TEST(final_error(replaced(good, "p=ne70", "p=ne70ne70")) == kMalformed);
  BOOST_TEST(final_error(good + ",") == kMalformed);
  BOOST_TEST(final_error(good + ",x=1") == kMalformed);
  BOOST_TEST(final_error(good + "," + good) == kMalformed);
}

BOOST_AUTO_TEST_CASE(every_step_happens_once_and_in_order) {
  ScramServer early = psql_server();
  BOOST_TEST(error_of(early.final(kPsql.client_final)) == kMalformed);
  ScramServer twice = psql_server_after_first();
  BOOST_TEST(error_of(twice.first(kPsql.client_first)) == kMalformed);
  ScramServer retried = psql_server_after_first();
  BOOST_TEST(error_of(retried.final("c=biws")) == kMalformed);
  BOOST_TEST(error_of(retried.final(kPsql.client_final)) == kMalformed);

  ScramClient silent(kPsqlPassword, kPsql.client_nonce);
  BOOST_TEST(error_of(silent.final(kPsql.server_first)) == kBadServer);
  BOOST_TEST(error_of(silent.verify(kPsql.server_final)) == kBadServer);
  ScramClient client = psql_client_after_final();
  BOOST_TEST(error_of(client.final(kPsql.server_first)) == kBadServer);
  BOOST_TEST(static_cast<bool>(client.verify(kPsql.server_final)));
  BOOST_TEST(error_of(client.verify(kPsql.server_final)) == kBadServer);
}

BOOST_AUTO_TEST_CASE(malformed_server_first) {
  auto error = [](std::string message) { return error_of(psql_client_after_first().final(message)); };
  const std::string good = kPsql.server_first;
  BOOST_TEST(error("") == kBadServer);
  BOOST_TEST(error("m=x," + good) == kBadServer);
  BOOST_TEST(error(replaced(good, "r=Enq", "r=enq")) == kBadServer);
  BOOST_TEST(error(replaced(good, kPsql.server_nonce, "")) == kBadServer);  // nothing of the server's own
  BOOST_TEST(error(replaced(good, kPsql.client_nonce, "")) == kBadServer);
  BOOST_TEST(error(replaced(good, "uoQQ", "uo Q")) == kBadServer);
  BOOST_TEST(error(replaced(good, "QlQ==", "QlR==")) == kBadServer);
  BOOST_TEST(error(replaced(good, "s=+2zKyDsTDydsHbM88jwQlQ==", "s=")) == kBadServer);
  BOOST_TEST(error(replaced(good, "s=+2zKyDsTDydsHbM88jwQlQ==,", "")) == kBadServer);
  BOOST_TEST(error(replaced(good, "i=4096", "i=0")) == kBadServer);
  BOOST_TEST(error(replaced(good, "i=4096", "i=-1")) == kBadServer);
  BOOST_TEST(error(replaced(good, "i=4096", "i=")) == kBadServer);
  BOOST_TEST(error(replaced(good, "i=4096", "i=4096x")) == kBadServer);
  BOOST_TEST(error(replaced(good, "i=4096", "i=10000001")) == kBadServer);  // would take seconds
  BOOST_TEST(error(replaced(good, "i=4096", "i=4294967297")) == kBadServer);
  BOOST_TEST(error(good + ",x=1") == kBadServer);
  BOOST_TEST(error(good + ",") == kBadServer);
  BOOST_TEST(psql_client_after_first().final(good + ",").error().to_log ==
             "malformed SCRAM message from server: attributes of server-first");
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_know_the_verifier_is_found_out) {
  auto error = [](std::string message) { return error_of(psql_client_after_final().verify(message)); };
  constexpr auto kBadSignature = "08P01 server login failed: invalid server signature";
  BOOST_TEST(error(replaced(kPsql.server_final, "v=T", "v=U")) == kBadSignature);
  BOOST_TEST(error(kRfc.server_final) == kBadSignature);
  BOOST_TEST(error("") == kBadServer);
  BOOST_TEST(error("v=") == kBadServer);
  BOOST_TEST(error("v=AAAA") == kBadServer);
  BOOST_TEST(error(kPsql.server_final + ",") == kBadServer);
  BOOST_TEST(error("x=1," + kPsql.server_final) == kBadServer);
}

BOOST_AUTO_TEST_CASE(the_error_of_a_server_is_logged_in_printable_form) {
  auto result = psql_client_after_final().verify("e=invalid\x1b-proof" + std::string(200, 'x'));
  BOOST_TEST(error_of(result) == "08P01 server login failed: SASL authentication failed");
  BOOST_TEST(result.error().to_log ==
             "server ended the SCRAM exchange with error \"invalid?-proof" + std::string(86, 'x') + "\"");
}

// A prefix of client-first may be a whole one with a shorter nonce; all others are refused.
BOOST_DATA_TEST_CASE(every_short_prefix_of_client_first, data::xrange(kPsql.client_first.size()), length) {
  auto result = psql_server().first(kPsql.client_first.substr(0, length));
  if (length <= std::string_view("n,,n=,r=").size()) {
    BOOST_TEST(error_of(result) == kMalformed);
  } else {
    BOOST_REQUIRE(result);
    BOOST_TEST(result->starts_with("r=" + kPsql.client_first.substr(8, length - 8) + kPsql.server_nonce + ",s="));
  }
}

BOOST_DATA_TEST_CASE(every_short_prefix_of_client_final_is_refused, data::xrange(kPsql.client_final.size()), length) {
  BOOST_TEST(final_error(kPsql.client_final.substr(0, length)) == kMalformed);
}

BOOST_DATA_TEST_CASE(every_short_prefix_of_server_first_is_refused_or_fails_later,
                     data::xrange(kPsql.server_first.size()), length) {
  ScramClient client = psql_client_after_first();
  auto result = client.final(kPsql.server_first.substr(0, length));
  bool is_count_cut_short = length > kPsql.server_first.size() - 4;  // i=4, i=40, i=409
  BOOST_TEST(error_of(result) == (is_count_cut_short ? "no error" : kBadServer));
  if (result) BOOST_TEST(error_of(client.verify(kPsql.server_final)) != "no error");
}

BOOST_DATA_TEST_CASE(every_short_prefix_of_server_final_is_refused, data::xrange(kPsql.server_final.size()), length) {
  static const ScramClient client = psql_client_after_final();
  ScramClient copy = client;
  BOOST_TEST(error_of(copy.verify(kPsql.server_final.substr(0, length))) == kBadServer);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
