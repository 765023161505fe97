#include "config/ldap_options.h"

#include <boost/test/unit_test.hpp>

using namespace lokadb;

BOOST_AUTO_TEST_SUITE(config_ldap_options)

BOOST_AUTO_TEST_CASE(pairs_are_parted_by_commas_or_blanks_and_may_be_quoted) {
  for (auto text : {"ldapserver=h,ldapport=1 ldapprefix=a", "\"ldapserver=h\" \"ldapport\"=\"1\",, ldapprefix=\"a\"",
                    " ldapserver=\"h\"\tldapport=1,ldapprefix=a "}) {
    auto options = parse_ldap_options(text);
    BOOST_REQUIRE_MESSAGE(options, text);
    BOOST_REQUIRE(options->servers.size() == 1u);
    BOOST_TEST(options->servers[0] == "h");
    BOOST_TEST(options->port == 1);
    BOOST_TEST(options->prefix == "a");
    BOOST_TEST(!options->searches());
  }
  auto options = parse_ldap_options("ldapserver=\" a  b \" ldapsuffix=\",x=\"\"y\"\"\" ldaptls=1 ldapscheme=LDAPS");
  BOOST_REQUIRE(options);
  BOOST_TEST(options->servers.size() == 2u);
  BOOST_TEST(options->suffix == ",x=\"y\"");
  BOOST_TEST(options->start_tls);
  BOOST_TEST(options->is_ldaps);
}

BOOST_AUTO_TEST_CASE(a_url_says_all_at_once) {
  auto options = parse_ldap_options("ldapurl=\"ldaps://[::1]:99/dc=a%20b,dc=c?mail,cn?one?(x=%24username)\"");
  BOOST_REQUIRE(!options);  // an attribute and a filter
  options = parse_ldap_options("ldapurl=\"ldaps://[::1]:99/dc=a%20b,dc=c??one?(x=%24username)\" ldapbinddn=m");
  BOOST_REQUIRE(options);
  BOOST_TEST(options->is_ldaps);
  BOOST_TEST(options->servers[0] == "[::1]");
  BOOST_TEST(options->port == 99);
  BOOST_TEST(options->base_dn == "dc=a b,dc=c");
  BOOST_TEST((options->scope == LdapOptions::Scope::One));
  BOOST_TEST(options->filter == "(x=$username)");
  BOOST_TEST(options->bind_dn == "m");
  options = parse_ldap_options("ldapurl=ldap:///dc=a");
  BOOST_REQUIRE(options);
  BOOST_TEST(options->servers.empty());
  BOOST_TEST((options->scope == LdapOptions::Scope::Base));
  for (auto url :
       {"ldap:/a", "http://a/b", "ldap://a:0/b", "ldap://a/b?c?tree", "ldap://a/%4", "ldap://a/%zz", "ldap://a/b????x"})
    BOOST_TEST(!parse_ldap_options(std::string("ldapurl=") + url), url);
}

BOOST_AUTO_TEST_CASE(filters) {
  LdapOptions options;
  BOOST_TEST(ldap_search_filter(options, "ann") == "(uid=ann)");
  options.attribute = "cn";
  BOOST_TEST(ldap_search_filter(options, "ann") == "(cn=ann)");
  options.filter = "(|(a=$username)(b=$username))";
  BOOST_TEST(ldap_search_filter(options, "$username") == "(|(a=$username)(b=$username))");
  BOOST_TEST(ldap_search_filter(options, "bob") == "(|(a=bob)(b=bob))");
  BOOST_TEST(is_searchable_ldap_name("a.b-c@d, e"));
  for (auto name : {"a*", "(a", "a)", "a\\", "a/b"}) BOOST_TEST(!is_searchable_ldap_name(name), name);
  BOOST_TEST(!is_searchable_ldap_name(std::string_view("a\0b", 3)));
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  for (auto text : {"", "ldapserver=h", "ldapprefix=a", "ldapserver=h ldapprefix=a ldapbasedn=b",
                    "ldapserver=h ldapsuffix=a ldapbinddn=b", "ldapserver=h ldapsuffix=a ldapsearchfilter=b",
                    "ldapbasedn=a ldapsearchattribute=b ldapsearchfilter=c", "ldapbasedn=a ldaptls=yes",
                    "ldapbasedn=a ldapport=0", "ldapbasedn=a ldapport=x", "ldapbasedn=a ldapport=65536",
                    "ldapbasedn=a ldapscheme=x", "ldapbasedn=a x=y", "ldapbasedn", "ldapbasedn=\"a"})
    BOOST_TEST(!parse_ldap_options(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
