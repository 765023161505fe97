#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

#include "proto/saslprep.h"
#include "proto/scram.h"

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

// Made by PostgreSQL 15 for the password "Tr0ub4dor&3 horse".
constexpr std::string_view kVerifier =
    "SCRAM-SHA-256$4096:+2zKyDsTDydsHbM88jwQlQ==$e+pIi4EGcwLEuTpHcWUbEpOAEYS8jCUb8BaF+zlOCt8=:"
    "gPbblvKozBwD1MWq2GDE1dtkcTlw7S8Z49EZl3cYmZA=";

struct Sample {
  const char* about;
  std::string_view password;
  std::string_view verifier;
};
std::ostream& operator<<(std::ostream& out, const Sample& sample) { return out << sample.about; }

// Verifiers that PostgreSQL 15 stored for these passwords.
constexpr Sample kSamples[] = {
    {"ascii", "Tr0ub4dor&3 horse", kVerifier},
    {"precomposed letter", "caf\u00e9",
     "SCRAM-SHA-256$4096:rSFyBoOELR4UUs2EV8yzyA==$u8ZRCFsn8yeoiLbIyfm+YzvJ5ga1G1Rw3LWXs52yj5E=:"
     "N7y9nXU6GWxosRWmzDc7I7mIzhM2/FWJN9m3HHRatVI="},
    {"superscript, numeral, no-break space, soft hyphen", "m\u00b2 \u2168\u00a0x\u00ady",
     "SCRAM-SHA-256$4096:p1NpIA07gWOGsnL11aT7SA==$NptXDANuo3pdRe9Lr89gGl8GKvrtW1B54e5Oq9rBFBU=:"
     "MzXhKyWLyPxlRztvFup5VN/EmGadTFeMc1HYrmsBYqQ="},
    {"combining accent, ordinal indicator", "e\u0301t\u00aa",
     "SCRAM-SHA-256$4096:GY6mzgNRWtU7Oyr4KwKalA==$F0iOT6upxXGbg5AiGJw1pVi09ozmS/RlMfX7Sxtkahc=:"
     "PI6SdnlIbZvmvYGqQiXRFJ5ZoXdCiAMuOPmSQWkLahs="},
    {"mixed directions", "\u0627a",
     "SCRAM-SHA-256$4096:N79fKtjXYX9PM6nP1BQC8Q==$tk5C0T4RKRX9+sa0pfdAoApi85/kw3yrcz+V/ibxF8U=:"
     "yqR6VpNrJUllqXBDd653nD5Uq8ablTLSRhtI3ZgOVDE="},
    {"control character", "tab\there",
     "SCRAM-SHA-256$4096:oA0qxcm7wWmWZbn1ksKfPA==$yjqof+SitbzpSfB/Qkq8kxxN0m2pSfswDvBiKvHkoG8=:"
     "+HfKQiGtrxnlRNfWTNv0C46pRf4eNt2w9rquq1nIC1c="},
    {"unassigned character", "\u0221x\u00b2",
     "SCRAM-SHA-256$4096:46WW1LtD0I54GcTw0+ReEA==$3Hdm8KnqKHK1JFGgsSodAhZ8dqRshizfQ12tNbV/MHs=:"
     "fuyoBGSlxuUy4ux5ZN6y/OoZCQYsXGL6nBeZ+oruAMc="},
    {"nothing but soft hyphens", "\u00ad\u00ad",
     "SCRAM-SHA-256$4096:eB29kXSGqZeGYx9qKJlVAQ==$HVt6iDE3rVHjHIbzQ9ZjOF9j/ItVllN/rvgiRbAVcH8=:"
     "1QI3uVlXvLGQt9+/8mpVP2yqQmRnUgrsdmqREG4uzyE="},
};

std::string with(std::string_view from, std::string_view to) {
  std::string text(kVerifier);
  return text.replace(text.find(from), from.size(), to);
}

BOOST_AUTO_TEST_SUITE(secrets)

BOOST_DATA_TEST_CASE(verifiers_are_those_of_postgresql, data::make(kSamples), sample) {
  auto parsed = parse_scram_verifier(sample.verifier);
  BOOST_REQUIRE(parsed);
  BOOST_TEST(parsed->iterations == 4096u);
  BOOST_TEST(parsed->salt.size() == 16u);
  BOOST_TEST(to_text(*parsed) == sample.verifier);
  BOOST_TEST(to_text(make_scram_verifier(sample.password, parsed->salt, parsed->iterations)) == sample.verifier);
}

BOOST_DATA_TEST_CASE(every_short_prefix_of_a_verifier_is_refused, data::xrange(kVerifier.size()), length) {
  BOOST_TEST(!parse_scram_verifier(std::string(kVerifier.substr(0, length))));
}

BOOST_AUTO_TEST_CASE(verifiers_are_strict) {
  BOOST_TEST(!parse_scram_verifier(std::string(kVerifier) + "="));
  BOOST_TEST(!parse_scram_verifier(std::string(kVerifier) + " "));
  BOOST_TEST(!parse_scram_verifier(" " + std::string(kVerifier)));
  BOOST_TEST(!parse_scram_verifier(with("SCRAM-SHA-256", "scram-sha-256")));
  BOOST_TEST(!parse_scram_verifier(with("SCRAM-SHA-256", "SCRAM-SHA-512")));
  BOOST_TEST(!parse_scram_verifier(with("+2zKyDsTDydsHbM88jwQlQ==", "")));
  BOOST_TEST(!parse_scram_verifier(with("+2zKyDsTDydsHbM88jwQlQ==", "+2zKyDsTDydsHbM88jwQlR==")));
  BOOST_TEST(!parse_scram_verifier(with("e+pIi4EG", "")));
  BOOST_TEST(!parse_scram_verifier(with("gPbblvKo", "")));
  BOOST_TEST(!parse_scram_verifier(with("Ct8=:", "Ct8=$")));
}

BOOST_DATA_TEST_CASE(iteration_counts_that_are_none,
                     data::make({"0", "-1", "+1", " 1", "1 ", "01", "", "1x", "0x10", "10000001", "4294967296",
                                 "99999999999999999999"}),
                     count) {
  BOOST_TEST(!parse_scram_verifier(with("4096", count)));
}

BOOST_AUTO_TEST_CASE(iteration_counts_at_the_limits) {
  BOOST_TEST(parse_scram_verifier(with("4096", "1"))->iterations == 1u);
  BOOST_TEST(parse_scram_verifier(with("4096", "10000000"))->iterations == kMaxScramIterations);
}

BOOST_AUTO_TEST_CASE(secrets_are_told_apart_by_shape) {
  BOOST_CHECK(kind_of_secret("") == SecretKind::Empty);
  BOOST_CHECK(kind_of_secret("md59baff7cd5c147e6ae241a037fdc14579") == SecretKind::Md5);
  BOOST_CHECK(kind_of_secret("md59BAFF7CD5C147E6AE241A037FDC14579") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("md59baff7cd5c147e6ae241a037fdc1457") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("md59baff7cd5c147e6ae241a037fdc145799") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("md59baff7cd5c147e6ae241a037fdc1457g") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("MD59baff7cd5c147e6ae241a037fdc14579") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret(kVerifier) == SecretKind::Scram);
  BOOST_CHECK(kind_of_secret(with("4096", "10000001")) == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("SCRAM-SHA-256$") == SecretKind::Plain);
  BOOST_CHECK(kind_of_secret("secret") == SecretKind::Plain);
}

// The first is what PostgreSQL 15 stored for the role "md".
BOOST_AUTO_TEST_CASE(md5_secrets_and_answers) {
  BOOST_TEST(md5_secret("open sesame", "md") == "md59baff7cd5c147e6ae241a037fdc14579");
  // md5("9baff7cd5c147e6ae241a037fdc14579" + "salt")
  BOOST_TEST(md5_response("md59baff7cd5c147e6ae241a037fdc14579", "salt") == "md5f8bd959a7e3d648625b458cc1c2dc2c7");
}

BOOST_AUTO_TEST_CASE(saslprep_of_the_rfc) {  // RFC 4013, section 3
  BOOST_TEST(saslprep("I\u00adX") == "IX");
  BOOST_TEST(saslprep("user") == "user");
  BOOST_TEST(saslprep("USER") == "USER");
  BOOST_TEST(saslprep("\u00aa") == "a");
  BOOST_TEST(saslprep("\u2168") == "IX");
}

BOOST_AUTO_TEST_CASE(what_saslprep_cannot_take_stays) {
  using namespace std::string_view_literals;
  for (std::string_view raw : {""sv, "\x07"sv, "\u06271"sv, "caf\xe9"sv, "\xc2"sv, "\xed\xa0\x80"sv, "\xc0\x80"sv,
                               "\xf4\x90\x80\x80"sv, "\u00b2\x01"sv, "\u00b2\0x"sv})
    BOOST_TEST(saslprep(raw) == raw);
}

BOOST_AUTO_TEST_CASE(long_passwords_are_not_prepared) {
  std::string fits, too_long;
  for (int i = 0; i < 512; ++i) fits += "\u00b2";
  too_long = fits + "x";
  BOOST_TEST(saslprep(fits) == std::string(512, '2'));
  BOOST_TEST(saslprep(too_long) == too_long);
  BOOST_TEST(saslprep(std::string(65530, 'x')) == std::string(65530, 'x'));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
