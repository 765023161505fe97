#include "proto/crypto.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;
using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(crypto)

// RFC 4648, section 10.
BOOST_AUTO_TEST_CASE(base64_of_the_rfc) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {{"", ""},
                                                                      {"f", "Zg=="},
                                                                      {"fo", "Zm8="},
                                                                      {"foo", "Zm9v"},
                                                                      {"foob", "Zm9vYg=="},
                                                                      {"fooba", "Zm9vYmE="},
                                                                      {"foobar", "Zm9vYmFy"},
                                                                      {"\xff\xef\xbf", "/++/"}};
  for (auto [raw, text] : kCases) {
    BOOST_TEST(base64_encode(as_bytes(raw)) == text);
    auto decoded = base64_decode(text);
    BOOST_REQUIRE(decoded);
    BOOST_TEST(*decoded == raw);
  }
}

BOOST_DATA_TEST_CASE(base64_that_is_not_canonical_is_refused,
                     data::make({"Zg",     "Zg=",    "Zg===",    "Zm8",  "Zm9",  "=",       "==",
                                 "===",    "====",   "A===",     "Zh==", "Zm9=", " Zg==",   "Zg== ",
                                 "Zg==\n", "Zm9v\n", "Zg==Zg==", "Zm=v", "Z-_v", "Zm9\xc3", "Zm9v===="}),
                     text) {
  BOOST_TEST(!base64_decode(text));
}

BOOST_AUTO_TEST_CASE(base64_with_a_zero_byte_is_refused) { BOOST_TEST(!base64_decode("Zm9\0"sv)); }

BOOST_AUTO_TEST_CASE(known_digests) {
  BOOST_TEST(md5_hex("") == "d41d8cd98f00b204e9800998ecf8427e");
  BOOST_TEST(md5_hex("abc") == "900150983cd24fb0d6963f7d28e17f72");
  // FIPS 180-2, appendix B.1.
  BOOST_TEST(base64_encode(sha256(as_bytes("abc"))) == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  // RFC 4231, test case 2.
  BOOST_TEST(base64_encode(hmac_sha256(as_bytes("Jefe"), "what do ya want for nothing?")) ==
             "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
}

BOOST_AUTO_TEST_CASE(comparison_sees_every_difference) {
  BOOST_TEST(equal_in_constant_time(as_bytes("same"), as_bytes("same")));
  BOOST_TEST(equal_in_constant_time({}, {}));
  BOOST_TEST(!equal_in_constant_time(as_bytes("same"), as_bytes("sane")));
  BOOST_TEST(!equal_in_constant_time(as_bytes("same"), as_bytes("sam")));
}

BOOST_AUTO_TEST_CASE(threads_do_not_disturb_each_other) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong)
    threads.emplace_back([&count] {
      for (int i = 0; i < 2000; ++i) {
        std::string text = std::to_string(i);
        if (hmac_sha256(as_bytes("k"), text) != hmac_sha256(as_bytes("k"), text)) ++count;
        if (md5_hex("abc") != "900150983cd24fb0d6963f7d28e17f72") ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) BOOST_TEST(count == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
