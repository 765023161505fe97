// Key files, and passwords that only the right key for the right purpose opens.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "config/support.h"
#include "secret/hex.h"
#include "secret/key_file.h"
#include "secret/sealed.h"

using namespace lokadb;
using namespace lokadb::secret;

namespace {

const std::string kKey(kKeySize, 'k'), kOtherKey = std::string(kKeySize - 1, 'k') + "l";
const std::string kPurpose = purpose_of_login("7", "direct", "customers_app");

std::string sealed() { return *seal(kKey, "s3cret", kPurpose); }

std::string opened(const std::string& key, const std::string& text, const std::string& purpose) {
  auto result = unseal(key, text, purpose);
  return result ? *result : "refused";
}

std::string read(const std::string& path) {
  auto key = read_key_file(path);
  return key ? "read" : key.error().to_client.substr(path.size());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(secrets_at_rest)

BOOST_AUTO_TEST_CASE(what_was_sealed_is_opened_again) {
  BOOST_TEST(opened(kKey, sealed(), kPurpose) == "s3cret");
  BOOST_TEST(opened(kKey, "\\x" + sealed(), kPurpose) == "s3cret");
  BOOST_TEST(opened(kKey, *seal(kKey, "", kPurpose), kPurpose) == "");
  BOOST_TEST(sealed() != sealed());
  BOOST_TEST(sealed().find(to_hex("s3cret")) == std::string::npos);
}

// Made with another program's AES-256-GCM: what stands in control planes today must open for ever.
BOOST_AUTO_TEST_CASE(the_format_stays) {
  const std::string stored = "000102030405060708090a0bced1df25b6a6c5228cbf9c74b2ff079c19ee975c61a4";
  BOOST_TEST(opened(kKey, stored, kPurpose) == "s3cret");
}

BOOST_AUTO_TEST_CASE(another_key_opens_nothing) {
  BOOST_TEST(opened(kOtherKey, sealed(), kPurpose) == "refused");
  BOOST_TEST(opened("short", sealed(), kPurpose) == "refused");
  BOOST_TEST(!seal("short", "s3cret", kPurpose));
}

BOOST_AUTO_TEST_CASE(a_row_given_to_another_organization_kind_or_role_does_not_open) {
  BOOST_TEST(opened(kKey, sealed(), purpose_of_login("8", "direct", "customers_app")) == "refused");
  BOOST_TEST(opened(kKey, sealed(), purpose_of_login("7", "fdw", "customers_app")) == "refused");
  BOOST_TEST(opened(kKey, sealed(), purpose_of_login("7", "direct", "postgres")) == "refused");
}

BOOST_AUTO_TEST_CASE(every_changed_digit_and_every_missing_one_is_noticed) {
  const std::string whole = sealed();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = changed[i] == '0' ? '1' : '0';
    BOOST_TEST(opened(kKey, changed, kPurpose) == "refused");
    BOOST_TEST(opened(kKey, whole.substr(0, i), kPurpose) == "refused");
  }
  BOOST_TEST(opened(kKey, whole + "00", kPurpose) == "refused");
  BOOST_TEST(opened(kKey, "no hexadecimal digits at all, but a long text of them, to be sure", kPurpose) == "refused");
}

BOOST_AUTO_TEST_CASE(an_error_tells_nothing_of_the_secret) {
  std::string text = unseal(kOtherKey, sealed(), kPurpose).error().log_text();
  BOOST_TEST(text == "the credentials cannot be read: another key file, or not what was stored");
}

BOOST_AUTO_TEST_CASE(a_key_file_is_made_once_and_for_its_owner_alone) {
  test::Sandbox folder;
  std::string path = folder.path("key");
  BOOST_TEST(static_cast<bool>(make_key_file(path)));
  BOOST_TEST(!make_key_file(path));
  struct stat info {};
  BOOST_REQUIRE(stat(path.c_str(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777) == 0600u);
  auto key = read_key_file(path);
  BOOST_REQUIRE(static_cast<bool>(key));
  BOOST_TEST(key->size() == kKeySize);
  BOOST_TEST(*key == *read_key_file(path));
}

BOOST_AUTO_TEST_CASE(a_key_file_that_is_none_is_refused) {
  test::Sandbox folder;
  std::string path = folder.path("key");
  BOOST_TEST(read(path) == ": No such file or directory");
  const std::string none = ": not a key file of lokadb keygen", digits(2 * kKeySize, 'a');
  for (const std::string& text :
       {std::string(), digits.substr(1), digits + "a", digits.substr(1) + "g", "\n" + digits}) {
    std::ofstream(path) << text;
    BOOST_REQUIRE(chmod(path.c_str(), 0600) == 0);
    BOOST_TEST(read(path) == none);
  }
  std::ofstream(path) << digits << "\n";
  BOOST_TEST(read(path) == "read");
  for (mode_t mode : {0604, 0640, 0620}) {
    BOOST_REQUIRE(chmod(path.c_str(), mode) == 0);
    BOOST_TEST(read(path) == ": others may read the key file: chmod 600 it");
  }
}

BOOST_AUTO_TEST_CASE(hexadecimal_digits) {
  using namespace std::string_view_literals;
  BOOST_TEST(to_hex("\x00\x7f\xff"sv) == "007fff");
  BOOST_TEST(*from_hex("007fff") == std::string("\x00\x7f\xff", 3));
  BOOST_TEST(*from_hex("") == "");
  for (const char* text : {"0", "0g", "0F", "00 "}) BOOST_TEST(!from_hex(text));
}

BOOST_AUTO_TEST_SUITE_END()
