// Rules as text, and whom they let in.
#include "config/hba.h"

#include <boost/test/unit_test.hpp>

#include "config/ldap_options.h"
#include "support.h"

using namespace lokadb;

namespace {

const std::map<std::string, std::string> kFiles = {
    {"/etc/lists/people", "ann, bob\ncarl # not dora\n\n\"all\" \"d e\""},
    {"/etc/lists/nested", "eve @people"},
    {"/etc/lists/everybody", "all"},
    {"/etc/lists/endless", "x @endless"},
    {"/etc/lists/broken", "x \"y"},
    {"/else/where", "sam"},
};

HbaText parse(std::string_view text) {
  IdentMaps maps = parse_ident("m alice ann\n\"m 2\" x all").maps;
  return parse_hba(text, "/etc/lists/hba.conf", maps, test::texts(kFiles));
}

// "address database user [tls] [physical]"; "unix" for a unix socket.
std::string method_for(const HbaText& hba, const std::string& address, std::string_view database, std::string_view user,
                       bool tls = false, bool physical = false) {
  HbaLogin login;
  login.address = address == "unix" ? *unix_address("/tmp/x") : *parse_ip(address, 1234);
  login.has_tls = tls;
  login.is_physical_replication = physical;
  login.database = database;
  login.user = user;
  const HbaRule* rule = hba.rules.find(login);
  return rule == nullptr ? "none" : std::string(name_of(rule->method));
}
std::string method_for(std::string_view rules, const std::string& address, std::string_view database,
                       std::string_view user, bool tls = false, bool physical = false) {
  auto parsed = parse(rules);
  BOOST_TEST(parsed.warnings.empty(), rules);
  return method_for(parsed, address, database, user, tls, physical);
}

bool is_refused(std::string_view line) {
  auto parsed = parse(line);
  return parsed.rules.rules.empty() && parsed.warnings == Faults{"could not parse hba config line 1"};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_hba)

BOOST_AUTO_TEST_CASE(each_kind_of_line_is_for_its_kind_of_connection) {
  struct Row {
    std::string_view word;
    bool unix, plain, tls;
  };
  for (auto [word, unix, plain, tls] : {Row{"local", true, false, false}, Row{"host", false, true, true},
                                        Row{"hostssl", false, false, true}, Row{"hostnossl", false, true, false}}) {
    std::string rule = std::string(word) + " all all " + (unix ? "" : "all ") + "trust";
    auto is = [](bool in) { return in ? "trust" : "none"; };
    BOOST_TEST(method_for(rule, "unix", "d", "u") == is(unix), rule);
    BOOST_TEST(method_for(rule, "1.2.3.4", "d", "u") == is(plain), rule);
    BOOST_TEST(method_for(rule, "1.2.3.4", "d", "u", true) == is(tls), rule);
    BOOST_TEST(method_for(rule, "::1", "d", "u", true) == is(tls), rule);
  }
}

BOOST_AUTO_TEST_CASE(each_method_has_its_word) {
  for (auto word : {"trust", "reject", "md5", "password", "scram-sha-256", "peer", "cert", "pam"})
    BOOST_TEST(method_for(std::string("local all all ") + word, "unix", "d", "u") == word);
  for (auto word : {"ident", "ldap", "gss", "plain", "any", "Trust", "\"trust\"", "trust,md5", "", "scram-sha-25"})
    BOOST_TEST(is_refused(std::string("local all all ") + word), word);
}

BOOST_AUTO_TEST_CASE(the_first_rule_that_fits_counts) {
  auto rules = "local a u reject\nlocal all u md5\nlocal all all trust\n";
  BOOST_TEST(method_for(rules, "unix", "a", "u") == "reject");
  BOOST_TEST(method_for(rules, "unix", "b", "u") == "md5");
  BOOST_TEST(method_for(rules, "unix", "a", "v") == "trust");
  BOOST_TEST(method_for(rules, "1.2.3.4", "a", "v") == "none");
  BOOST_TEST(method_for("", "unix", "a", "v") == "none");
}

BOOST_AUTO_TEST_CASE(lists_of_databases_and_users) {
  auto rules = "local a,b , \"c d\" u,\"v,w\" trust # the rest is a comment, \"too\"";
  for (auto database : {"a", "b", "c d"})
    for (auto user : {"u", "v,w"}) BOOST_TEST(method_for(rules, "unix", database, user) == "trust");
  BOOST_TEST(method_for(rules, "unix", "c", "u") == "none");
  BOOST_TEST(method_for(rules, "unix", "a", "v") == "none");
  BOOST_TEST(method_for(rules, "unix", "A", "u") == "none");
}

BOOST_AUTO_TEST_CASE(words_in_quotes_are_names) {
  auto rules = "local \"all\",\"sameuser\",\"replication\" \"all\",\"@x\",\"+y\",\"q\"\"r\" trust";
  BOOST_TEST(method_for(rules, "unix", "all", "all") == "trust");
  BOOST_TEST(method_for(rules, "unix", "sameuser", "@x") == "trust");
  BOOST_TEST(method_for(rules, "unix", "replication", "+y") == "trust");
  BOOST_TEST(method_for(rules, "unix", "all", "q\"r") == "trust");
  BOOST_TEST(method_for(rules, "unix", "d", "all") == "none");
  BOOST_TEST(method_for(rules, "unix", "all", "u") == "none");
  BOOST_TEST(method_for(rules, "unix", "all", "all", false, true) == "none");
}

BOOST_AUTO_TEST_CASE(sameuser_is_a_database_called_like_the_user) {
  BOOST_TEST(method_for("local sameuser all trust", "unix", "u", "u") == "trust");
  BOOST_TEST(method_for("local sameuser all trust", "unix", "v", "u") == "none");
  BOOST_TEST(method_for("local x,sameuser all trust", "unix", "x", "u") == "trust");
  BOOST_TEST(method_for("local all sameuser trust", "unix", "x", "x") == "none");  // a name among users
}

BOOST_AUTO_TEST_CASE(physical_replication_wants_its_own_word) {
  BOOST_TEST(method_for("local all all trust", "unix", "d", "u", false, true) == "none");
  BOOST_TEST(method_for("local replication all trust", "unix", "d", "u", false, true) == "trust");
  BOOST_TEST(method_for("local replication all trust", "unix", "d", "u") == "none");
  BOOST_TEST(method_for("local replication all trust", "unix", "replication", "u") == "none");
  BOOST_TEST(method_for("local replication,all v trust", "unix", "d", "u", false, true) == "none");
}

BOOST_AUTO_TEST_CASE(addresses_by_bits_and_by_mask) {
  for (auto rule : {"host all all 10.1.0.0/16 trust", "host all all 10.1.0.0 255.255.0.0 trust",
                    "host all all \"10.1.0.0/16\" trust"}) {
    BOOST_TEST(method_for(rule, "10.1.2.3", "d", "u") == "trust");
    BOOST_TEST(method_for(rule, "10.2.2.3", "d", "u") == "none");
    BOOST_TEST(method_for(rule, "::1", "d", "u") == "none");
  }
  for (auto rule : {"host all all 2001:db8::/35 trust", "host all all 2001:db8:: ffff:ffff:e000:: trust"}) {
    BOOST_TEST(method_for(rule, "2001:db8:1fff::1", "d", "u") == "trust");
    BOOST_TEST(method_for(rule, "2001:db8:2000::1", "d", "u") == "none");
    BOOST_TEST(method_for(rule, "1.2.3.4", "d", "u") == "none");
  }
  BOOST_TEST(method_for("host all all 0.0.0.0/0 trust", "9.9.9.9", "d", "u") == "trust");
  BOOST_TEST(method_for("host all all 0.0.0.0/0 trust", "::1", "d", "u") == "none");
  BOOST_TEST(method_for("host all all ::/0 trust", "::1", "d", "u") == "trust");
  BOOST_TEST(method_for("host all all 1.2.3.4/32 trust", "1.2.3.4", "d", "u") == "trust");
  BOOST_TEST(method_for("host all all 1.2.3.4/32 trust", "1.2.3.5", "d", "u") == "none");
  BOOST_TEST(method_for("host all all ::1/128 trust", "::1", "d", "u") == "trust");
  BOOST_TEST(method_for("host all all ::1/128 trust", "::2", "d", "u") == "none");
}

BOOST_AUTO_TEST_CASE(an_address_with_more_bits_than_its_mask_is_nobodys) {
  auto parsed = parse("host all all 10.1.2.3/16 trust\nhost all all 10.1.2.3 255.0.0.0 trust");
  BOOST_TEST(parsed.warnings.size() == 2u);
  BOOST_TEST(parsed.warnings[0].find("line 1") != std::string::npos);
  BOOST_TEST(method_for(parsed, "10.1.2.3", "d", "u") == "none");
  BOOST_TEST(method_for(parsed, "10.1.0.0", "d", "u") == "none");
}

BOOST_AUTO_TEST_CASE(addresses_that_are_none) {
  for (auto address : {"",
                       "samehost",
                       "samenet",
                       "localhost",
                       "1.2.3.4",
                       "1.2.3.4/33",
                       "1.2.3.4/",
                       "1.2.3.4/x",
                       "1.2.3/24",
                       "1.2.3.4/-1",
                       "1.2.3.4/8x",
                       "::1/129",
                       "[::1]/128",
                       "fe80::1%lo/64",
                       "\"all\"",
                       "1.2.3.4 ffff::",
                       "1.2.3.4 255.255.0.0 255.0.0.0",
                       "all 255.0.0.0",
                       "1.2.3.4/8 255.0.0.0",
                       "1.2.3.4/ 8",
                       "1.2.3.4,all"})
    BOOST_TEST(is_refused(std::string("host all all ") + address + " trust"), address);
  BOOST_TEST(is_refused("local all all 1.2.3.4/32 trust"));
}

BOOST_AUTO_TEST_CASE(lists_from_files) {
  auto in = [](const std::string& list, std::string_view user) {
    return method_for("local all " + list + " trust", "unix", "d", user) == "trust";
  };
  for (auto user : {"ann", "bob", "carl", "all", "d e"}) BOOST_TEST(in("@people", user), user);
  for (auto user : {"dora", "not", "#", "sam"}) BOOST_TEST(!in("@people", user), user);
  BOOST_TEST(in("zed,@people", "zed"));
  BOOST_TEST(in("@nested", "eve"));
  BOOST_TEST(in("@nested", "carl"));
  BOOST_TEST(in("@everybody", "anybody"));
  BOOST_TEST(in("@/else/where", "sam"));
  BOOST_TEST(in("@\"people\"", "ann"));
  BOOST_TEST(method_for("local @people all trust", "unix", "bob", "u") == "trust");
  for (auto list : {"@missing", "@endless", "@broken", "@", "x,@missing"})
    BOOST_TEST(is_refused(std::string("local all ") + list + " trust"), list);
}

BOOST_AUTO_TEST_CASE(maps_are_for_cert_and_peer) {
  auto parsed = parse("local all all peer map=m\nhostssl all all all cert map=\"m 2\" # x");
  BOOST_REQUIRE(parsed.rules.rules.size() == 2u);
  BOOST_TEST(parsed.rules.rules[0].map_name == "m");
  BOOST_TEST(parsed.rules.rules[0].map->front().system_name == "alice");
  BOOST_TEST(parsed.rules.rules[1].map_name == "m 2");
  BOOST_TEST(parsed.rules.rules[1].line == 2);
  for (auto tail : {"peer map=unknown", "peer map=", "peer map", "peer map = m", "peer map=m map=m", "peer x=y",
                    "peer \"map=m\"", "peer map=m,", "md5 map=m", "trust map=m", "reject x", "cert clientname=CN"})
    BOOST_TEST(is_refused(std::string("local all all ") + tail), tail);
}

BOOST_AUTO_TEST_CASE(ldap_options_are_kept_as_they_stand) {
  auto parsed = parse("host all all all ldap ldapserver=h, ldapprefix=\"cn=\" \"ldapsuffix\"=\"a\"\"b\" # x");
  BOOST_REQUIRE(parsed.rules.rules.size() == 1u);
  BOOST_TEST(parsed.rules.rules[0].ldap_options == "ldapserver=h, ldapprefix=\"cn=\" \"ldapsuffix\"=\"a\"\"b\"");
  auto options = parse_ldap_options(parsed.rules.rules[0].ldap_options);
  BOOST_REQUIRE(options);
  BOOST_TEST(options->prefix == "cn=");
  BOOST_TEST(options->suffix == "a\"b");
  for (auto tail : {"ldap", "ldap ldapserver=h", "ldap ldapserver=h ldapprefix=a ldapbasedn=b", "ldap map=m"})
    BOOST_TEST(is_refused(std::string("local all all ") + tail), tail);
}

BOOST_AUTO_TEST_CASE(pam_may_name_its_service) {
  auto parsed = parse("local all all pam\nlocal all all pam pamservice=\"my service\"");
  BOOST_REQUIRE(parsed.rules.rules.size() == 2u);
  BOOST_TEST(parsed.rules.rules[0].pam_service.empty());
  BOOST_TEST(parsed.rules.rules[1].pam_service == "my service");
  for (auto tail : {"pam pamservice=", "pam pamservice", "pam map=m", "pam pamservice=a pamservice=b"})
    BOOST_TEST(is_refused(std::string("local all all ") + tail), tail);
}

BOOST_AUTO_TEST_CASE(a_bad_line_is_left_out_and_the_rest_holds) {
  for (auto line :
       {"local", "local all", "local all all", "Local all all trust", "hosts all all all trust",
        "\"local\" all all trust", "local samerole all trust", "local samegroup all trust", "local all +staff trust",
        "local ,all all trust", "local a,,b all trust", "local all a b trust", "local all all trust trust",
        "local all all \"trust", "local \"all all trust", ", local all all trust", "\"", "local all all trust \"x"})
    BOOST_TEST(is_refused(line), line);
  BOOST_TEST(is_refused(std::string_view("local all al\0l trust", 20)));
  auto parsed = parse("# comment\n\nlocal all ann reject\nlocal all +x trust\r\n\t local all all md5\r\n");
  BOOST_TEST(parsed.warnings == Faults{"could not parse hba config line 4"}, boost::test_tools::per_element());
  BOOST_TEST(method_for(parsed, "unix", "d", "ann") == "reject");
  BOOST_TEST(method_for(parsed, "unix", "d", "bob") == "md5");
}

// Cut off anywhere a line must not become one that lets more in.
BOOST_AUTO_TEST_CASE(no_short_piece_of_a_line_is_a_rule) {
  std::string line = "hostssl \"a b\",c  d,@people 10.0.0.0/24 cert map=\"m 2\"";
  std::size_t complete = line.find("cert") + 4;
  for (std::size_t n = 1; n < line.size(); ++n) {
    bool ends_at_cert = n == complete || n == complete + 1;
    BOOST_TEST(is_refused(line.substr(0, n)) == !ends_at_cert, n);
  }
  BOOST_TEST(parse(line).rules.rules.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
