// The configuration as the rest of the proxy sees it: immutable snapshots, swapped whole by a reload.
//
// Names of members of Options are the keys of the [pgbouncer] section; the table in options.cc has one row
// for each. Times are microseconds (the file has seconds), 0 means "off" unless the row says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"

namespace lokadb {

enum class PoolMode { Session, Transaction, Statement };
enum class AuthType { Any, Trust, Plain, Md5, Cert, Hba, Ldap, Pam, Scram };
enum class TlsMode { Disable, Allow, Prefer, Require, VerifyCa, VerifyFull };
enum class LoadBalanceHosts { RoundRobin, Disable };

// The word of the file and of SHOW for each value ("session", "scram-sha-256", "verify-ca", "round-robin" ...).
std::string_view name_of(PoolMode);
std::string_view name_of(AuthType);
std::string_view name_of(TlsMode);
std::string_view name_of(LoadBalanceHosts);

using TextList = std::vector<std::string>;
using OptionalText = std::optional<std::string>;  // unset is shown as NULL

struct Options {
  TextList admin_users;
  bool application_name_add_host = false;
  OptionalText auth_dbname;
  OptionalText auth_file;
  std::string auth_hba_file;
  OptionalText auth_ident_file;
  OptionalText auth_ldap_options;
  std::string auth_query;
  AuthType auth_type = AuthType::Md5;
  OptionalText auth_user;
  Micros autodb_idle_timeout{};
  Micros cancel_wait_timeout{};
  Micros client_idle_timeout{};
  Micros client_login_timeout{};
  OptionalText client_tls13_ciphers;
  std::string client_tls_ca_file;
  std::string client_tls_cert_file;
  std::string client_tls_ciphers;
  std::string client_tls_dheparams;
  std::string client_tls_ecdhcurve;
  std::string client_tls_key_file;
  std::string client_tls_protocols;
  TlsMode client_tls_sslmode = TlsMode::Disable;
  OptionalText conffile;
  int default_pool_size = 0;
  bool disable_pqexec = false;
  Micros dns_max_ttl{};
  Micros dns_nxdomain_ttl{};
  Micros dns_zone_check_period{};
  Micros idle_transaction_timeout{};
  TextList ignore_startup_parameters;
  std::string job_name;
  TextList listen_addr;
  int listen_backlog = 0;
  int listen_port = 0;
  bool log_connections = true;
  bool log_disconnections = true;
  bool log_pooler_errors = true;
  bool log_stats = true;
  std::string logfile;
  std::string login_notify_message;
  int max_client_conn = 0;
  int max_db_client_connections = 0;
  int max_db_connections = 0;
  std::uint32_t max_packet_size = 0;
  int max_prepared_statements = 0;
  int max_user_client_connections = 0;
  int max_user_connections = 0;
  int min_pool_size = 0;
  int peer_id = 0;
  std::string pidfile;
  int pkt_buf = 0;
  TextList plugins;  // ours, not PgBouncer's, as worker_threads
  PoolMode pool_mode = PoolMode::Session;
  Micros pool_idle_timeout{};
  Micros query_timeout{};
  int query_wait_notify = 0;  // seconds
  Micros query_wait_timeout{};
  int reserve_pool_size = 0;
  Micros reserve_pool_timeout{};
  std::string resolv_conf;
  int sbuf_loopcnt = 0;
  int scram_iterations = 0;
  Micros server_check_delay{};
  std::string server_check_query;
  Micros server_connect_timeout{};
  bool server_fast_close = false;
  Micros server_idle_timeout{};
  Micros server_lifetime{};
  Micros server_login_retry{};
  std::string server_reset_query;
  bool server_reset_query_always = false;
  bool server_round_robin = false;
  OptionalText server_tls13_ciphers;
  std::string server_tls_ca_file;
  std::string server_tls_cert_file;
  std::string server_tls_ciphers;
  std::string server_tls_key_file;
  std::string server_tls_protocols;
  TlsMode server_tls_sslmode = TlsMode::Prefer;
  bool so_reuseport = false;
  int stats_period = 0;  // seconds
  TextList stats_users;
  Micros suspend_timeout{};
  bool syslog = false;
  std::string syslog_facility;
  std::string syslog_ident;
  bool tcp_defer_accept = true;
  bool tcp_keepalive = true;
  int tcp_keepcnt = 0;
  int tcp_keepidle = 0;
  int tcp_keepintvl = 0;
  int tcp_socket_buffer = 0;
  int tcp_user_timeout = 0;  // milliseconds
  TextList track_extra_parameters;
  Micros transaction_timeout{};
  std::string unix_socket_dir;
  std::string unix_socket_group;
  int unix_socket_mode = 0;
  OptionalText user;
  std::optional<int> verbose;
  std::uint32_t hold_back_buffer = 0, max_routed_message = 0;
  bool server_tls_direct = false;          // ours, not PgBouncer's
  bool pin_session_state = false;          // ours, not PgBouncer's
  bool strict_startup_parameters = false;  // ours, not PgBouncer's
  int worker_threads = 0;                  // ours, not PgBouncer's; 0: the CPUs allowed to the process
};

// One entry of [databases]. Unset values fall back to [pgbouncer]'s.
struct DatabaseConfig {
  std::string name;    // of the entry; "*" for the template of unknown names
  std::string dbname;  // at the server; empty only in "*": the requested name
  TextList hosts;      // empty: unix socket in unix_socket_dir
  int port = 5432;
  OptionalText user;  // forced user
  OptionalText password;
  OptionalText auth_user, auth_query, auth_dbname;
  OptionalText client_encoding, datestyle, timezone, application_name;  // for the server's start-up packet
  std::optional<int> pool_size, min_pool_size, reserve_pool_size;
  std::optional<int> max_db_connections, max_db_client_connections;
  std::optional<PoolMode> pool_mode;
  OptionalText connect_query;
  std::optional<Micros> server_lifetime, query_wait_timeout;
  LoadBalanceHosts load_balance_hosts = LoadBalanceHosts::RoundRobin;

  bool operator==(const DatabaseConfig&) const = default;
  // A change in what new server connections are made of (PgBouncer: pools are tagged dirty by it).
  bool connects_like(const DatabaseConfig& other) const;
};

// One entry of [users]. Unset values fall back to the database's, then to [pgbouncer]'s.
struct UserConfig {
  std::string name;
  std::optional<PoolMode> pool_mode;
  std::optional<int> pool_size, reserve_pool_size;
  std::optional<int> max_user_connections, max_user_client_connections;
  std::optional<Micros> query_timeout, query_wait_timeout, idle_transaction_timeout, transaction_timeout,
      client_idle_timeout;
};

// One entry of [peers].
struct PeerConfig {
  int id = 0;
  std::string host;
  int port = 6432;
  std::optional<int> pool_size;
};

// A section that is none of the proxy's own: of a plugin, which alone knows what may be in it. Lines in the order of
// the file.
struct PluginSection {
  struct Line {
    std::string key, value;
    std::string place;  // "in configuration (FILE:LINE)"
    bool operator==(const Line& other) const { return key == other.key && value == other.value; }
  };
  std::string place;  // of its first header
  std::vector<Line> lines;

  // The last line of this key; nullptr: there is none.
  const Line* find(std::string_view key) const;
  bool operator==(const PluginSection& other) const { return lines == other.lines; }
};
using PluginSections = std::map<std::string, PluginSection, std::less<>>;

// The auth_file: user name -> secret (plain text, "md5..." or "SCRAM-SHA-256$...").
struct Userlist {
  std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> secrets;
  // nullptr: not in the file. An empty secret never authenticates by password.
  const std::string* find(std::string_view user) const {
    auto it = secrets.find(user);
    return it == secrets.end() ? nullptr : &it->second;
  }
};

struct HbaRules;  // config/hba.h

struct Config {
  std::string path;  // of the file it came from
  Options options;
  std::map<std::string, DatabaseConfig, std::less<>> databases;
  std::optional<DatabaseConfig> fallback;  // the "*" entry
  std::map<std::string, UserConfig, std::less<>> users;
  std::map<int, PeerConfig> peers;
  PluginSections sections;                   // empty unless there are plugins; they say which of them may be there
  std::shared_ptr<const Userlist> userlist;  // never null
  std::shared_ptr<const HbaRules> hba;       // never null; without rules unless auth_type is hba

  bool is_admin(std::string_view user) const;  // in admin_users
  bool is_stats(std::string_view user) const;  // in stats_users
};
using ConfigPtr = std::shared_ptr<const Config>;

// Reads the file (and what it includes, the auth_file, and for auth_type=hba its files) into a new snapshot. `previous`
// is the one in force, or null at start: from it come the options a reload must not change (rows marked "at start") and
// those that have no default and are missing now. On a fault the lines PgBouncer would log have been logged, and the
// error's text says which; nothing of `previous` is changed. Main thread; blocks on files.
Result<ConfigPtr> load_config(const std::string& path, const ConfigPtr& previous);

// A copy of `config` with one option of [pgbouncer] set, as the console's SET does. A key that only counts at start
// is accepted and changes nothing.
Result<ConfigPtr> config_with_option(const ConfigPtr& config, std::string_view key, std::string_view value);

// One line of SHOW CONFIG, in PgBouncer's order. value and fallback are nullopt where SHOW prints NULL.
struct OptionLine {
  std::string_view key;
  OptionalText value, fallback;
  bool changeable;
};
std::vector<OptionLine> option_lines(const Options& options);

}  // namespace lokadb
