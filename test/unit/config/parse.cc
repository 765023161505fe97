#include "config/parse.h"

#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;
using test::parse;

namespace {

const std::string kGood = R"(
  ; a file as people write them
  [databases]
  one = host=127.0.0.1,::1 port=5433 dbname=p0 password='a;b' connect_query='SET x = ''y''; SELECT 1'
  'the two' = user=u password=p#q pool_mode=statement
  * = host=/tmp pool_size=3
  [pgbouncer]
  listen_addr = 127.0.0.1, ::1
  admin_users = root, pgbouncer
  stats_users = watcher
  auth_query = SELECT a ; b FROM c WHERE d = $1
  server_reset_query = RESET ALL; -- all
  pool_mode = transaction
  query_timeout = 0.5
  unix_socket_mode = 0700
  track_extra_parameters = search_path, intervalstyle
  auth_dbname = postgres
  [peers]
  1 = host=/tmp/a
  2 = host=b port=7
  [users]
  bob = pool_size=4 query_wait_timeout=0
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(config_parse)

BOOST_AUTO_TEST_CASE(a_whole_file_becomes_a_config) {
  auto parsed = parse(kGood);
  BOOST_TEST(parsed.faults == "");
  BOOST_REQUIRE(parsed.config);
  const Config& config = *parsed.config;
  BOOST_TEST(config.path == "x.ini");
  BOOST_TEST(config.options.conffile.value() == "x.ini");
  BOOST_TEST(config.databases.size() == 2u);
  const auto& one = config.databases.at("one");
  BOOST_TEST(one.hosts == (TextList{"127.0.0.1", "::1"}), boost::test_tools::per_element());
  BOOST_TEST(one.dbname == "p0");
  BOOST_TEST(one.password.value() == "a;b");
  BOOST_TEST(one.connect_query.value() == "SET x = 'y'; SELECT 1");
  BOOST_TEST(config.databases.at("the two").password.value() == "p#q");
  BOOST_REQUIRE(config.fallback);
  BOOST_TEST(config.fallback->pool_size.value() == 3);
  BOOST_TEST(config.options.auth_query == "SELECT a ; b FROM c WHERE d = $1");
  BOOST_TEST(config.options.server_reset_query == "RESET ALL; -- all");
  BOOST_CHECK(config.options.query_timeout == std::chrono::milliseconds(500));
  BOOST_TEST(config.peers.at(2).port == 7);
  BOOST_TEST(config.users.at("bob").pool_size.value() == 4);
  BOOST_TEST(config.is_admin("root"));
  BOOST_TEST(!config.is_admin("watcher"));
  BOOST_TEST(config.is_stats("watcher"));
  BOOST_TEST(!config.is_stats("root,"));
  BOOST_REQUIRE(config.userlist);
  BOOST_TEST(config.userlist->secrets.empty());
}

BOOST_AUTO_TEST_CASE(every_short_prefix_is_a_config_or_a_fault) {
  int accepted = 0;
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    auto parsed = parse(kGood.substr(0, length));
    BOOST_TEST(parsed.config.has_value() == parsed.faults.empty(), "prefix of " << length);
    accepted += parsed.config.has_value();
  }
  BOOST_TEST(accepted > 10);  // those that end behind a whole line after the header
}

BOOST_AUTO_TEST_CASE(every_key_of_the_table_is_accepted_with_its_default) {
  std::string text = "[pgbouncer]\n";
  for (const auto& row : option_rows()) {
    const char* value = row.key == "auth_ldap_options" ? "ldapbasedn=x" : "1";
    text.append(row.key).append(" = ").append(row.fallback ? row.fallback : value).append("\n");
  }
  BOOST_TEST(parse(text).faults == "");
}

BOOST_AUTO_TEST_CASE(a_file_needs_the_main_section) {
  BOOST_TEST(parse("").faults == "main section missing from config file");
  BOOST_TEST(parse("[databases]\na=\n").faults == "main section missing from config file");
  BOOST_TEST(parse("[pgbouncer]").faults == "");
}

BOOST_AUTO_TEST_CASE(faults_have_their_texts_in_order) {
  BOOST_TEST(parse("a = 1\n[pgbouncer]").faults ==
             "load_init_file: value without section: a\n"
             "invalid value \"1\" for parameter a in configuration (x.ini:1)");
  BOOST_TEST(parse("[pgbouncer]\nnope = 1").faults ==
             "unknown parameter: pgbouncer/nope\n"
             "invalid value \"1\" for parameter nope in configuration (x.ini:2)");
  BOOST_TEST(parse("[pgbouncer]\npool_mode = x").faults ==
             "invalid value \"x\" for parameter pool_mode in configuration (x.ini:2)");
  BOOST_TEST(parse("[Pgbouncer]").faults == "invalid section \"Pgbouncer\" in configuration (x.ini:1)");
  BOOST_TEST(parse("[pgbouncer]\nauth_dbname = pgbouncer").faults ==
             "cannot use the reserved \"pgbouncer\" database as an auth_dbname\n"
             "invalid value \"pgbouncer\" for parameter auth_dbname in configuration (x.ini:2)");
  BOOST_TEST(parse("[databases]\npgbouncer = host=x").faults ==
             "database name \"pgbouncer\" is reserved\n"
             "invalid value \"host=x\" for parameter pgbouncer in configuration (x.ini:2)");
  BOOST_TEST(parse("[databases]\nd = password=secret host").faults ==
             "syntax error in connection string\n"
             "invalid value \"...\" for parameter d in configuration (x.ini:2)");
  BOOST_TEST(parse("[users]\nu = x=1").faults ==
             "unrecognized user parameter: x\n"
             "invalid value \"x=1\" for parameter u in configuration (x.ini:2)");
  BOOST_TEST(parse("[peers]\n1 = port=1").faults ==
             "host was not provided for peer 1\n"
             "invalid value \"port=1\" for parameter 1 in configuration (x.ini:2)");
}

BOOST_AUTO_TEST_CASE(sections_may_come_back_but_a_second_main_header_resets) {
  auto parsed = parse(
      "[databases]\na = host=1\n[pgbouncer]\nlisten_port = 1\ndefault_pool_size = 5\nauth_user = u\n"
      "[databases]\nb = host=2\na = host=3\n[pgbouncer]\nmin_pool_size = 2\n");
  BOOST_REQUIRE(parsed.config);
  BOOST_TEST(parsed.config->databases.size() == 2u);
  BOOST_TEST(parsed.config->databases.at("a").hosts[0] == "3");
  BOOST_TEST(parsed.config->options.default_pool_size == 20);
  BOOST_TEST(parsed.config->options.listen_port == 6432);
  BOOST_TEST(parsed.config->options.min_pool_size == 2);
  BOOST_TEST(parsed.config->options.auth_user.value() == "u");
}

BOOST_AUTO_TEST_CASE(an_included_file_continues_the_section) {
  auto parsed = parse("[pgbouncer]\n%include more\nmin_pool_size = 3", nullptr,
                      {{"more", "default_pool_size = 9\n[pgbouncer]\nlisten_port = 5\n[pgbouncer]"}});
  BOOST_REQUIRE(parsed.config);
  BOOST_TEST(parsed.config->options.default_pool_size == 20);
  BOOST_TEST(parsed.config->options.min_pool_size == 3);
}

BOOST_AUTO_TEST_CASE(a_reload_keeps_what_only_counts_at_start) {
  auto first = parse("[pgbouncer]\nlisten_port = 1\nunix_socket_dir = /a\ndefault_pool_size = 5\nmax_client_conn=9");
  BOOST_REQUIRE(first.config);
  auto second = parse("[pgbouncer]\nlisten_port = 2\nunix_socket_dir = /b\npkt_buf = garbage\ndefault_pool_size = 6",
                      &*first.config);
  BOOST_TEST(second.faults == "");
  BOOST_REQUIRE(second.config);
  BOOST_TEST(second.config->options.listen_port == 1);
  BOOST_TEST(second.config->options.unix_socket_dir == "/a");
  BOOST_TEST(second.config->options.pkt_buf == 4096);
  BOOST_TEST(second.config->options.default_pool_size == 6);
  BOOST_TEST(second.config->options.max_client_conn == 100);
}

BOOST_AUTO_TEST_CASE(a_reload_keeps_dropped_keys_that_have_no_default) {
  auto first = parse(
      "[pgbouncer]\nauth_dbname=a\nauth_file=b\nauth_ident_file=c\nauth_ldap_options=ldapbasedn=d\nauth_user=e\n"
      "client_tls13_ciphers=f\nserver_tls13_ciphers=g\nconffile=h\nuser=i\nverbose=1\nauth_hba_file=j\n"
      "[databases]\ngone = host=x\n* = host=y\n[users]\nu = pool_size=1\n[peers]\n1 = host=z");
  BOOST_REQUIRE(first.config);
  auto second = parse("[pgbouncer]", &*first.config);
  BOOST_REQUIRE(second.config);
  const Options& options = second.config->options;
  BOOST_TEST(options.auth_dbname.value() == "a");
  BOOST_TEST(options.auth_file.value() == "b");
  BOOST_TEST(options.auth_ident_file.value() == "c");
  BOOST_TEST(options.auth_ldap_options.value() == "ldapbasedn=d");
  BOOST_TEST(options.auth_user.value() == "e");
  BOOST_TEST(options.client_tls13_ciphers.value() == "f");
  BOOST_TEST(options.server_tls13_ciphers.value() == "g");
  BOOST_TEST(options.conffile.value() == "h");
  BOOST_TEST(options.user.value() == "i");
  BOOST_TEST(options.verbose.value() == 1);
  BOOST_TEST(options.auth_hba_file == "");
  BOOST_TEST(second.config->databases.empty());
  BOOST_TEST(!second.config->fallback.has_value());
  BOOST_TEST(second.config->users.empty());
  BOOST_TEST(second.config->peers.empty());
}

BOOST_AUTO_TEST_CASE(a_connection_string_of_ten_kilobytes_is_whole) {
  std::string query(10000, 'q');
  auto parsed = parse("[pgbouncer]\n[databases]\nd = host=h connect_query='" + query + "' port=1");
  BOOST_REQUIRE(parsed.config);
  BOOST_TEST(parsed.config->databases.at("d").connect_query.value() == query);
  BOOST_TEST(parsed.config->databases.at("d").port == 1);
}

BOOST_AUTO_TEST_CASE(sections_of_plugins_are_kept_with_their_places) {
  auto config = parse("[a]\nx = 1\n[pgbouncer]\nplugins = a, b\n[b]\n[a]\ny = two words ; all of it\nx = 3\n").config;
  BOOST_REQUIRE(config.has_value());
  BOOST_TEST(config->options.plugins.size() == 2u);
  BOOST_REQUIRE(config->sections.size() == 2u);
  const PluginSection& a = config->sections.at("a");
  BOOST_TEST(a.place == "in configuration (x.ini:1)");
  // Of a key that comes twice the last line counts.
  BOOST_REQUIRE(a.lines.size() == 2u);
  BOOST_TEST(a.lines[0].key == "y");
  BOOST_TEST(a.lines[0].value == "two words ; all of it");
  BOOST_TEST(a.lines[0].place == "in configuration (x.ini:7)");
  BOOST_TEST(a.find("x")->value == "3");
  BOOST_TEST(a.find("z") == nullptr);
  BOOST_TEST(config->sections.at("b").lines.empty());
}

BOOST_AUTO_TEST_CASE(without_plugins_a_section_of_one_is_unknown) {
  std::string unknown = "invalid section \"a\" in configuration (x.ini:1)";
  BOOST_TEST(parse("[a]\nx = 1\n[pgbouncer]\n").faults == unknown);
  BOOST_TEST(parse("[a]\nx = 1\n[pgbouncer]\nplugins = b\n[pgbouncer]\n").faults == unknown);
  // The first fault is still the first that is told.
  BOOST_TEST(parse("[a]\nx = 1\n[pgbouncer]\nnope = 1\n").faults.starts_with(unknown + "\n"));
  BOOST_TEST(parse("[a]\nx\n[pgbouncer]\nplugins = a").faults ==
             unknown + "\nsyntax error in configuration (x.ini:2), stopping loading");
}

BOOST_AUTO_TEST_CASE(which_plugins_there_are_cannot_be_changed_by_a_reload) {
  auto first = parse("[pgbouncer]\nplugins = a\n[a]\nx = 1\n").config;
  BOOST_REQUIRE(first.has_value());
  auto second = parse("[pgbouncer]\nplugins = b\n[a]\nx = 2\n[b]\n", &*first).config;
  BOOST_REQUIRE(second.has_value());
  BOOST_TEST(second->options.plugins.at(0) == "a");
  BOOST_TEST(second->sections.at("a").find("x")->value == "2");
  auto plain = parse("[pgbouncer]\n").config;
  BOOST_TEST(parse("[pgbouncer]\nplugins = a\n[a]\n", &*plain).faults ==
             "invalid section \"a\" in configuration (x.ini:3)");
}

BOOST_AUTO_TEST_SUITE_END()
