// The control plane's rows as the router takes them.
#include "secret/opened_logins.h"

#include <boost/test/unit_test.hpp>

#include "secret/key_file.h"
#include "secret/sealed.h"

using namespace lokadb::secret;

namespace {

const std::string kKey(kKeySize, 'k'), kNewKey(kKeySize, 'n');

SealedLogin row(const std::string& org, const std::string& user, const std::string& password,
                const std::string& key = kKey) {
  return {org, user, *seal(key, password, purpose_of_login(org, "direct", user))};
}

// "7 app:pw, 8 app:x"; with "!" those that cannot be read.
std::string known(const OpenedLogins& opened) {
  std::string text;
  for (const auto& [org, login] : opened.logins())
    text += (text.empty() ? "" : ", ") + org + " " + login.user + ":" + login.password;
  for (const std::string& org : opened.unreadable()) text += " !" + org;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(opened_logins)

BOOST_AUTO_TEST_CASE(rows_become_logins_and_go_with_them) {
  OpenedLogins opened;
  auto seven = row("7", "app", "a"), eight = row("8", "app", "b");
  BOOST_TEST(!opened.take(kKey, {}));
  BOOST_TEST(opened.take(kKey, {seven, eight}));
  BOOST_TEST(known(opened) == "7 app:a, 8 app:b");
  BOOST_TEST(!opened.take(kKey, {seven, eight}));
  BOOST_TEST(opened.take(kKey, {eight}));
  BOOST_TEST(known(opened) == "8 app:b");
  BOOST_TEST(opened.take(kKey, {seven}));  // as many as before
  BOOST_TEST(known(opened) == "7 app:a");
}

BOOST_AUTO_TEST_CASE(another_password_and_another_role_are_news_and_the_same_sealed_anew_is_none) {
  OpenedLogins opened;
  opened.take(kKey, {row("7", "app", "a")});
  BOOST_TEST(!opened.take(kKey, {row("7", "app", "a")}));
  BOOST_TEST(opened.take(kKey, {row("7", "app", "b")}));
  BOOST_TEST(opened.take(kKey, {row("7", "other", "b")}));
  BOOST_TEST(known(opened) == "7 other:b");
}

BOOST_AUTO_TEST_CASE(with_the_wrong_key_there_is_nothing) {
  OpenedLogins opened;
  auto seven = row("7", "app", "a");
  BOOST_TEST(!opened.take(kNewKey, {seven}));
  BOOST_TEST(known(opened) == " !7");
  BOOST_TEST(opened.take(kKey, {seven}));
  BOOST_TEST(known(opened) == "7 app:a");
}

BOOST_AUTO_TEST_CASE(a_row_of_another_organization_kind_or_role_opens_nothing_and_changes_nothing) {
  OpenedLogins opened;
  auto seven = row("7", "app", "a");
  opened.take(kKey, {seven});
  auto given_on = seven, other_role = seven, fdw = seven;
  given_on.organization = "8";
  other_role.user = "postgres";
  fdw.secret = *seal(kKey, "f", purpose_of_login("7", "fdw", "app"));
  BOOST_TEST(!opened.take(kKey, {seven, given_on}));
  BOOST_TEST(known(opened) == "7 app:a !8");
  for (const auto& tampered : {other_role, fdw}) {
    BOOST_TEST(!opened.take(kKey, {tampered}));
    BOOST_TEST(known(opened) == "7 app:a !7");
  }
}

// -rotate comes before the proxy's key file is replaced, or after it.
BOOST_AUTO_TEST_CASE(a_rotation_of_keys_loses_nothing_in_either_order) {
  auto before = row("7", "app", "a"), after = row("7", "app", "a", kNewKey);
  OpenedLogins rows_first, key_first;
  rows_first.take(kKey, {before});
  BOOST_TEST(!rows_first.take(kKey, {after}));
  BOOST_TEST(known(rows_first) == "7 app:a !7");
  BOOST_TEST(!rows_first.take(kNewKey, {after}));
  BOOST_TEST(known(rows_first) == "7 app:a");
  key_first.take(kKey, {before});
  BOOST_TEST(!key_first.take(kNewKey, {before}));
  BOOST_TEST(known(key_first) == "7 app:a !7");
  BOOST_TEST(!key_first.take(kNewKey, {after}));
  BOOST_TEST(known(key_first) == "7 app:a");
  BOOST_TEST(key_first.take(kNewKey, {row("7", "app", "b", kNewKey)}));
  BOOST_TEST(known(key_first) == "7 app:b");
}

BOOST_AUTO_TEST_SUITE_END()
