#include "config/options.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>

using namespace lokadb;

namespace {

// In the order in which PgBouncer's SHOW CONFIG has them, then our own.
constexpr std::string_view kKeys =
    "admin_users application_name_add_host auth_dbname auth_file auth_hba_file auth_ident_file auth_ldap_options "
    "auth_query auth_type auth_user autodb_idle_timeout cancel_wait_timeout client_idle_timeout client_login_timeout "
    "client_tls13_ciphers client_tls_ca_file client_tls_cert_file client_tls_ciphers client_tls_dheparams "
    "client_tls_ecdhcurve client_tls_key_file client_tls_protocols client_tls_sslmode conffile default_pool_size "
    "disable_pqexec dns_max_ttl dns_nxdomain_ttl dns_zone_check_period idle_transaction_timeout "
    "ignore_startup_parameters job_name listen_addr listen_backlog listen_port log_connections log_disconnections "
    "log_pooler_errors log_stats logfile login_notify_message max_client_conn max_db_client_connections "
    "max_db_connections max_packet_size max_prepared_statements max_user_client_connections max_user_connections "
    "min_pool_size peer_id pidfile pkt_buf pool_mode pool_idle_timeout query_timeout query_wait_notify "
    "query_wait_timeout reserve_pool_size reserve_pool_timeout resolv_conf sbuf_loopcnt scram_iterations "
    "server_check_delay server_check_query server_connect_timeout server_fast_close server_idle_timeout "
    "server_lifetime server_login_retry server_reset_query server_reset_query_always server_round_robin "
    "server_tls13_ciphers server_tls_ca_file server_tls_cert_file server_tls_ciphers server_tls_key_file "
    "server_tls_protocols server_tls_sslmode so_reuseport stats_period stats_users suspend_timeout syslog "
    "syslog_facility syslog_ident tcp_defer_accept tcp_keepalive tcp_keepcnt tcp_keepidle tcp_keepintvl "
    "tcp_socket_buffer tcp_user_timeout track_extra_parameters transaction_timeout unix_socket_dir unix_socket_group "
    "unix_socket_mode user verbose hold_back_buffer max_routed_message plugins pin_session_state "
    "strict_startup_parameters server_tls_direct worker_threads";

constexpr std::string_view kOnlyAtStart[] = {
    "disable_pqexec",   "job_name",    "listen_addr",  "listen_backlog",         "listen_port",     "pidfile",
    "pkt_buf",          "resolv_conf", "so_reuseport", "track_extra_parameters", "unix_socket_dir", "unix_socket_group",
    "unix_socket_mode", "user",        "plugins",      "worker_threads"};

constexpr std::string_view kWithoutDefault[] = {"auth_dbname",
                                                "auth_file",
                                                "auth_ident_file",
                                                "auth_ldap_options",
                                                "auth_user",
                                                "client_tls13_ciphers",
                                                "server_tls13_ciphers",
                                                "conffile",
                                                "user",
                                                "verbose"};

template <class List>
bool among(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

// What SHOW CONFIG prints for `key` once `value` was set; "refused" or the check's line if it was not.
std::string shown(std::string_view key, std::string_view value) {
  const OptionRow* row = find_option(key);
  BOOST_REQUIRE(row);
  Options options = default_options();
  Faults faults;
  OptionalText before = option_text(options, *row);
  if (!set_option(options, *row, value, faults)) {
    BOOST_CHECK(option_text(options, *row) == before);
    return faults.empty() ? "refused" : faults[0];
  }
  return option_text(options, *row).value_or("NULL");
}

OptionLine line(const Options& options, std::string_view key) {
  for (auto& one : option_lines(options))
    if (one.key == key) return one;
  BOOST_FAIL("no such line");
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_options)

BOOST_AUTO_TEST_CASE(show_config_has_every_key_in_order) {
  std::string keys;
  for (const auto& one : option_lines(default_options())) keys.append(keys.empty() ? "" : " ").append(one.key);
  BOOST_TEST(keys == kKeys);
}

BOOST_AUTO_TEST_CASE(rows_say_when_they_apply_and_whether_they_have_a_default) {
  for (const auto& row : option_rows()) {
    BOOST_TEST((row.applies == Applies::AtStart) == among(kOnlyAtStart, row.key), row.key);
    BOOST_TEST((row.fallback == nullptr) == among(kWithoutDefault, row.key), row.key);
  }
}

BOOST_AUTO_TEST_CASE(rows_have_help_of_one_sentence) {
  for (const auto& row : option_rows()) {
    BOOST_TEST(row.help.size() > 15, row.key);
    BOOST_TEST(row.help.ends_with('.'), row.key);
    BOOST_TEST(!option_type_text(row).empty(), row.key);
  }
  BOOST_TEST(option_type_text(*find_option("pool_mode")) == "session, transaction, statement");
  BOOST_TEST(option_type_text(*find_option("query_timeout")) == "seconds");
  BOOST_TEST(option_type_text(*find_option("syslog")) == "boolean");
  BOOST_TEST(option_type_text(*find_option("verbose")) == "integer");
  BOOST_TEST(option_type_text(*find_option("listen_addr")) == "list");
  BOOST_TEST(option_type_text(*find_option("auth_file")) == "text");
}

BOOST_AUTO_TEST_CASE(defaults_are_legal_and_shown_as_written) {
  for (const auto& row : option_rows()) {
    if (!row.fallback) continue;
    std::string expected = row.key == "unix_socket_mode" ? "511" : row.fallback;
    BOOST_TEST(shown(row.key, row.fallback) == expected, row.key);
    BOOST_TEST(option_text(default_options(), row).value() == expected, row.key);
  }
}

BOOST_AUTO_TEST_CASE(some_defaults_by_name) {
  Options options = default_options();
  BOOST_TEST(options.default_pool_size == 20);
  BOOST_TEST(options.max_packet_size == 2147483647u);
  BOOST_TEST(options.unix_socket_mode == 0777);
  BOOST_CHECK(options.query_wait_timeout == std::chrono::seconds(120));
  BOOST_CHECK(options.auth_type == AuthType::Md5);
  BOOST_CHECK(options.server_tls_sslmode == TlsMode::Prefer);
  BOOST_TEST(options.track_extra_parameters == TextList{"IntervalStyle"}, boost::test_tools::per_element());
  BOOST_TEST(options.auth_query ==
             "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE "
             "rolname=$1 AND rolcanlogin");
}

BOOST_AUTO_TEST_CASE(lines_have_value_default_and_changeable) {
  Options options = default_options();
  options.auth_user = "";
  options.stats_users = {"a", "b"};
  BOOST_TEST(line(options, "unix_socket_mode").value.value() == "511");
  BOOST_TEST(line(options, "unix_socket_mode").fallback.value() == "0777");
  BOOST_TEST(!line(options, "unix_socket_mode").changeable);
  BOOST_TEST(line(options, "stats_users").value.value() == "a, b");
  BOOST_TEST(line(options, "stats_users").fallback.value() == "");
  BOOST_TEST(line(options, "stats_users").changeable);
  BOOST_TEST(line(options, "auth_user").value.value() == "");
  BOOST_TEST(!line(options, "auth_file").value.has_value());
  BOOST_TEST(!line(options, "auth_file").fallback.has_value());
  BOOST_TEST(line(options, "verbose").value.value() == "0");
  BOOST_TEST(!line(options, "verbose").fallback.has_value());
}

BOOST_AUTO_TEST_CASE(integers_are_c_literals) {
  BOOST_TEST(shown("default_pool_size", "10") == "10");
  BOOST_TEST(shown("default_pool_size", "0x1f") == "31");
  BOOST_TEST(shown("unix_socket_mode", "0700") == "448");
  BOOST_TEST(shown("max_client_conn", "-1") == "-1");
  BOOST_TEST(shown("verbose", "2") == "2");
  for (auto bad : {"", "x", "1x", "1 2", "1.5", "2147483648", "99999999999999999999"})
    BOOST_TEST(shown("default_pool_size", bad) == "refused", bad);
}

BOOST_AUTO_TEST_CASE(booleans_are_integers) {
  BOOST_TEST(shown("syslog", "1") == "1");
  BOOST_TEST(shown("syslog", "2") == "1");
  BOOST_TEST(shown("log_stats", "0") == "0");
  for (auto bad : {"yes", "on", "true", ""}) BOOST_TEST(shown("syslog", bad) == "refused", bad);
}

BOOST_AUTO_TEST_CASE(unsigned_integers_have_no_sign) {
  BOOST_TEST(shown("max_packet_size", "4294967295") == "4294967295");
  BOOST_TEST(shown("max_packet_size", "4294967296") == "refused");
  BOOST_TEST(shown("max_packet_size", "-1") == "refused");
}

BOOST_AUTO_TEST_CASE(times_are_decimal_seconds) {
  BOOST_TEST(shown("query_timeout", "0") == "0");
  BOOST_TEST(shown("query_timeout", "1.5") == "1.5");
  BOOST_TEST(shown("query_timeout", ".25") == "0.25");
  BOOST_TEST(shown("query_timeout", "+3") == "3");
  BOOST_TEST(shown("query_timeout", "3600") == "3600");
  BOOST_TEST(shown("query_timeout", "1234567") == "1.23457e+06");
  BOOST_TEST(shown("query_timeout", "0.0000005") == "1e-06");
  for (auto bad : {"", "-1", "5s", "1,5", "inf", "nan", "0x10", "+-1", "+", ".", "1e300", "1e14", " 1"})
    BOOST_TEST(shown("query_timeout", bad) == "refused", bad);
}

BOOST_AUTO_TEST_CASE(words_ignore_case_and_are_shown_in_lower_case) {
  BOOST_TEST(shown("pool_mode", "TRANSACTION") == "transaction");
  BOOST_TEST(shown("auth_type", "Scram-SHA-256") == "scram-sha-256");
  for (auto type : {"any", "trust", "plain", "md5", "cert", "hba", "ldap", "pam", "scram-sha-256"})
    BOOST_TEST(shown("auth_type", type) == type);
  for (auto mode : {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})
    BOOST_TEST(shown("client_tls_sslmode", mode) == mode);
  BOOST_TEST(shown("pool_mode", "tx") == "refused");
  BOOST_TEST(shown("auth_type", "") == "refused");
  BOOST_TEST(shown("server_tls_sslmode", "1") == "refused");
}

BOOST_AUTO_TEST_CASE(lists_are_split_at_commas_and_blanks) {
  BOOST_TEST(shown("admin_users", "a,b  c,,d") == "a, b, c, d");
  BOOST_TEST(shown("admin_users", "") == "");
}

BOOST_AUTO_TEST_CASE(checks_refuse_what_the_type_allows) {
  BOOST_TEST(shown("syslog_facility", "local7") == "local7");
  BOOST_TEST(shown("syslog_facility", "local8") == "refused");
  BOOST_TEST(shown("auth_dbname", "postgres") == "postgres");
  BOOST_TEST(shown("auth_dbname", "pgbouncer") == "cannot use the reserved \"pgbouncer\" database as an auth_dbname");
  BOOST_TEST(shown("peer_id", "16383") == "16383");
  BOOST_TEST(shown("peer_id", "16384") == "refused");
  BOOST_TEST(shown("peer_id", "-1") == "refused");
  BOOST_TEST(shown("pkt_buf", "75") == "75");
  BOOST_TEST(shown("pkt_buf", "0") == "refused");
  BOOST_TEST(shown("scram_iterations", "0") == "refused");
  BOOST_TEST(shown("worker_threads", "0") == "0");
  BOOST_TEST(shown("worker_threads", "-1") == "refused");
}

BOOST_AUTO_TEST_CASE(a_header_resets_what_a_reload_may_change) {
  Options options = default_options();
  options.default_pool_size = 7;
  options.listen_port = 7;
  options.auth_user = "kept";
  Options reloaded = options;
  reset_options(reloaded, true);
  BOOST_TEST(reloaded.default_pool_size == 20);
  BOOST_TEST(reloaded.listen_port == 7);
  BOOST_TEST(reloaded.auth_user.value() == "kept");
  reset_options(options, false);
  BOOST_TEST(options.listen_port == 6432);
  BOOST_TEST(options.auth_user.value() == "kept");
}

BOOST_AUTO_TEST_CASE(unknown_keys_are_not_found) {
  BOOST_TEST(find_option("") == nullptr);
  BOOST_TEST(find_option("Pool_mode") == nullptr);
  BOOST_TEST(find_option("pool_mod") == nullptr);
  BOOST_TEST(find_option("service_name") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
