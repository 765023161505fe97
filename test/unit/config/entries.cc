#include "config/entries.h"

#include <boost/test/unit_test.hpp>

#include "config/connstr.h"

using namespace lokadb;
using std::chrono::seconds;

namespace {

// "k:v,k:v," or "failed".
std::string pairs_of(std::string_view text) {
  ConnString pairs(text);
  std::string out;
  while (auto pair = pairs.next()) out.append(pair->key).append(":").append(pair->value).append(",");
  return pairs.failed() ? "failed" : out;
}

DatabaseConfig database(std::string_view text, std::string_view name = "d") {
  Faults faults;
  auto entry = parse_database_entry(name, text, faults);
  BOOST_REQUIRE(entry);
  BOOST_TEST(faults.empty());
  return *entry;
}

template <class Entry>
std::string fault_of(std::optional<Entry> (*parse)(std::string_view, std::string_view, Faults&), std::string_view name,
                     std::string_view text) {
  Faults faults;
  BOOST_TEST(!parse(name, text, faults).has_value());
  return faults.size() == 1 ? faults[0] : std::to_string(faults.size()) + " faults";
}

std::string database_fault(std::string_view text, std::string_view name = "d") {
  return fault_of(parse_database_entry, name, text);
}

UserConfig user(std::string_view text) {
  Faults faults;
  auto entry = parse_user_entry("u", text, faults);
  BOOST_REQUIRE(entry);
  return *entry;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_entries)

BOOST_AUTO_TEST_CASE(pairs_are_separated_by_blanks) {
  BOOST_TEST(pairs_of("") == "");
  BOOST_TEST(pairs_of("   ") == "");
  BOOST_TEST(pairs_of("a=1 b=2") == "a:1,b:2,");
  BOOST_TEST(pairs_of("\t a = 1\t b =2  c= 3 ") == "a:1,b:2,c:3,");
  BOOST_TEST(pairs_of("a=b=c;d") == "a:b=c;d,");
}

BOOST_AUTO_TEST_CASE(quoted_values_are_unquoted) {
  BOOST_TEST(pairs_of("a='x y' b=1") == "a:x y,b:1,");
  BOOST_TEST(pairs_of("a='it''s' b=''''") == "a:it's,b:',");
  BOOST_TEST(pairs_of("a=it's") == "a:it's,");
}

BOOST_AUTO_TEST_CASE(broken_pairs_are_refused) {
  for (auto text : {"a", "a=", "=1", "a= ", "a=''", "a='", "a='x", "a='x''", "a='x'y=1", "a b=1", "a=1 =2"})
    BOOST_TEST(pairs_of(text) == "failed", text);
}

BOOST_AUTO_TEST_CASE(a_database_has_defaults) {
  auto entry = database("");
  BOOST_TEST(entry.name == "d");
  BOOST_TEST(entry.dbname == "d");
  BOOST_TEST(entry.hosts.empty());
  BOOST_TEST(entry.port == 5432);
  BOOST_TEST(!entry.user.has_value());
  BOOST_TEST(!entry.pool_size.has_value());
  BOOST_CHECK(entry.load_balance_hosts == LoadBalanceHosts::RoundRobin);
}

BOOST_AUTO_TEST_CASE(every_text_of_a_database_is_read) {
  auto entry = database(
      "dbname=b user=u password='a;b ''c' auth_user=au auth_query='SELECT 1, $1' auth_dbname=ad client_encoding=UTF8 "
      "datestyle='ISO, MDY' timezone=UTC application_name=app connect_query='SET x = ''y'';'");
  BOOST_TEST(entry.dbname == "b");
  BOOST_TEST(entry.user.value() == "u");
  BOOST_TEST(entry.password.value() == "a;b 'c");
  BOOST_TEST(entry.auth_user.value() == "au");
  BOOST_TEST(entry.auth_query.value() == "SELECT 1, $1");
  BOOST_TEST(entry.auth_dbname.value() == "ad");
  BOOST_TEST(entry.client_encoding.value() == "UTF8");
  BOOST_TEST(entry.datestyle.value() == "ISO, MDY");
  BOOST_TEST(entry.timezone.value() == "UTC");
  BOOST_TEST(entry.application_name.value() == "app");
  BOOST_TEST(entry.connect_query.value() == "SET x = 'y';");
}

BOOST_AUTO_TEST_CASE(every_number_of_a_database_is_read) {
  auto entry = database(
      "port=1234 pool_size=1 min_pool_size=2 reserve_pool_size=3 max_db_connections=4 max_db_client_connections=5 "
      "server_lifetime=6 query_wait_timeout=7 pool_mode=Statement load_balance_hosts=disable");
  BOOST_TEST(entry.port == 1234);
  BOOST_TEST(entry.pool_size.value() == 1);
  BOOST_TEST(entry.min_pool_size.value() == 2);
  BOOST_TEST(entry.reserve_pool_size.value() == 3);
  BOOST_TEST(entry.max_db_connections.value() == 4);
  BOOST_TEST(entry.max_db_client_connections.value() == 5);
  BOOST_CHECK(entry.server_lifetime.value() == seconds(6));
  BOOST_CHECK(entry.query_wait_timeout.value() == seconds(7));
  BOOST_CHECK(entry.pool_mode.value() == PoolMode::Statement);
  BOOST_CHECK(entry.load_balance_hosts == LoadBalanceHosts::Disable);
  BOOST_TEST(database("reserve_pool=9").reserve_pool_size.value() == 9);
}

BOOST_AUTO_TEST_CASE(numbers_are_read_as_atoi_does_and_some_zeros_mean_unset) {
  BOOST_TEST(database("pool_size=12abc").pool_size.value() == 12);
  BOOST_TEST(database("pool_size=abc").pool_size.value() == 0);
  BOOST_TEST(database("pool_size=99999999999999999999").pool_size.value() == 2147483647);
  BOOST_TEST(!database("pool_size=-1").pool_size.has_value());
  BOOST_TEST(!database("max_db_connections=0").max_db_connections.has_value());
  BOOST_TEST(!database("server_lifetime=0").server_lifetime.has_value());
  BOOST_CHECK(database("query_wait_timeout=0").query_wait_timeout.value() == seconds(0));
  BOOST_TEST(!database("query_wait_timeout=-1").query_wait_timeout.has_value());
}

BOOST_AUTO_TEST_CASE(hosts_are_a_comma_list) {
  BOOST_TEST(database("host=a").hosts == TextList{"a"}, boost::test_tools::per_element());
  BOOST_TEST(database("host=a,b,,::1").hosts == (TextList{"a", "b", "::1"}), boost::test_tools::per_element());
  BOOST_TEST(database("host='/x y, b'").hosts == (TextList{"/x y", "b"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(database_errors_have_their_texts) {
  BOOST_TEST(database_fault("host") == "syntax error in connection string");
  BOOST_TEST(database_fault("host=") == "syntax error in connection string");
  BOOST_TEST(database_fault("hots=x") == "unrecognized connection parameter: hots");
  BOOST_TEST(database_fault("HOST=x") == "unrecognized connection parameter: HOST");
  BOOST_TEST(database_fault("port=0") == "invalid port: 0");
  BOOST_TEST(database_fault("port=x") == "invalid port: x");
  BOOST_TEST(database_fault("port=65536") == "invalid port: 65536");
  BOOST_TEST(database_fault("pool_mode=fast") == "invalid pool mode: fast");
  BOOST_TEST(database_fault("load_balance_hosts=on") == "invalid load_balance_hosts: on");
  BOOST_TEST(database_fault("auth_dbname=pgbouncer") ==
             "cannot use the reserved \"pgbouncer\" database as an auth_dbname");
  BOOST_TEST(database_fault("", "pgbouncer") == "database name \"pgbouncer\" is reserved");
  BOOST_TEST(database_fault("", std::string(64, 'n')) == "too long db name: " + std::string(64, 'n'));
  BOOST_TEST(database("", std::string(63, 'n')).dbname.size() == 63u);
}

BOOST_AUTO_TEST_CASE(the_template_entry_has_no_dbname_of_its_own) {
  BOOST_TEST(database("host=a", "*").dbname == "");
  BOOST_TEST(database("dbname=x", "*").dbname == "x");
}

BOOST_AUTO_TEST_CASE(changes_that_need_new_server_connections_are_told_apart) {
  auto base = database("host=a dbname=b user=u password=p pool_size=1");
  for (auto text : {"host=a dbname=b user=u password=q pool_size=1", "host=a dbname=b user=u pool_size=9",
                    "host=a dbname=b user=u password=p pool_mode=statement client_encoding=SQL_ASCII"})
    BOOST_TEST(base.connects_like(database(text)), text);
  std::string same = "host=a dbname=b user=u password=p pool_size=1 ";
  for (auto text : {"host=c", "dbname=c", "port=1", "user=v", "connect_query=c", "auth_dbname=c", "auth_query=c",
                    "load_balance_hosts=disable"})
    BOOST_TEST(!base.connects_like(database(same + text)), text);
}

BOOST_AUTO_TEST_CASE(every_key_of_a_user_is_read) {
  auto entry = user(
      "pool_mode=transaction pool_size=1 reserve_pool_size=2 max_user_connections=3 max_user_client_connections=4 "
      "query_timeout=5 query_wait_timeout=6 idle_transaction_timeout=7 transaction_timeout=8 client_idle_timeout=9");
  BOOST_TEST(entry.name == "u");
  BOOST_CHECK(entry.pool_mode.value() == PoolMode::Transaction);
  BOOST_TEST(entry.pool_size.value() == 1);
  BOOST_TEST(entry.reserve_pool_size.value() == 2);
  BOOST_TEST(entry.max_user_connections.value() == 3);
  BOOST_TEST(entry.max_user_client_connections.value() == 4);
  BOOST_CHECK(entry.query_timeout.value() == seconds(5));
  BOOST_CHECK(entry.query_wait_timeout.value() == seconds(6));
  BOOST_CHECK(entry.idle_transaction_timeout.value() == seconds(7));
  BOOST_CHECK(entry.transaction_timeout.value() == seconds(8));
  BOOST_CHECK(entry.client_idle_timeout.value() == seconds(9));
  BOOST_CHECK(user("query_wait_timeout=0").query_wait_timeout.value() == seconds(0));
  BOOST_TEST(!user("query_timeout=0 max_user_connections=0").query_timeout.has_value());
  BOOST_TEST(!user("max_user_connections=0").max_user_connections.has_value());
}

BOOST_AUTO_TEST_CASE(user_errors_have_their_texts) {
  auto fault = [](std::string_view text) { return fault_of(parse_user_entry, "u", text); };
  BOOST_TEST(fault("pool_size") == "syntax error in user settings");
  BOOST_TEST(fault("host=x") == "unrecognized user parameter: host");
  BOOST_TEST(fault("pool_mode=x") == "invalid pool mode: x");
}

BOOST_AUTO_TEST_CASE(peers_need_a_number_and_a_host) {
  auto fault = [](std::string_view name, std::string_view text) { return fault_of(parse_peer_entry, name, text); };
  Faults faults;
  auto peer = parse_peer_entry("3", "host=h port=7 pool_size=2", faults);
  BOOST_REQUIRE(peer);
  BOOST_TEST(peer->id == 3);
  BOOST_TEST(peer->host == "h");
  BOOST_TEST(peer->port == 7);
  BOOST_TEST(peer->pool_size.value() == 2);
  peer = parse_peer_entry("65535", "host=h", faults);
  BOOST_REQUIRE(peer);
  BOOST_TEST(peer->port == 6432);
  BOOST_TEST(!peer->pool_size.has_value());
  BOOST_TEST(fault("3", "port=7") == "host was not provided for peer 3");
  BOOST_TEST(fault("3", "host=h port=0") == "invalid port: 0");
  BOOST_TEST(fault("3", "host=h user=u") == "unrecognized connection parameter: user");
  BOOST_TEST(fault("3", "host=") == "syntax error in connection string");
  for (auto name : {"0", "65536", "x", "", "-1", "1x"})
    BOOST_TEST(fault(name, "host=h") == "ids of peers must be numbers from 1 to 65535", name);
}

BOOST_AUTO_TEST_SUITE_END()
