#include "config/options.h"

#include <algorithm>
#include <iterator>

#include "build_config.h"
#include "config/ldap_options.h"
#include "config/words.h"

namespace lokadb {

namespace {

constexpr std::string_view kFacilities[] = {"auth",   "authpriv", "daemon", "user",   "local0", "local1",
                                            "local2", "local3",   "local4", "local5", "local6", "local7"};

bool check_facility(std::string_view value, Faults&) {
  return std::any_of(std::begin(kFacilities), std::end(kFacilities),
                     [value](std::string_view name) { return name == value; });
}

bool check_auth_dbname(std::string_view value, Faults& faults) {
  if (value != kConsoleDatabase) return true;
  faults.emplace_back(kReservedAuthDbname);
  return false;
}

bool check_ldap_options(std::string_view value, Faults& faults) {
  auto understood = parse_ldap_options(value);
  if (!understood) faults.push_back(understood.error().to_client);
  return static_cast<bool>(understood);
}

bool check_auth_type(std::string_view value, Faults& faults) {
  std::size_t before = faults.size();
  auto type = parse_word<AuthType>(value);
#ifndef HAVE_PAM
  if (type == AuthType::Pam) faults.emplace_back("pam is not supported by this build");
#endif
#ifndef HAVE_LDAP
  if (type == AuthType::Ldap) faults.emplace_back("ldap is not supported by this build");
#endif
  return type.has_value() && faults.size() == before;
}

bool check_peer_id(std::string_view value, Faults&) {
  constexpr int kMostPeers = 16383;  // the bits of a cancel key that say whose it is
  auto id = parse_int(value);
  return id && *id >= 0 && *id <= kMostPeers;
}

bool check_positive(std::string_view value, Faults&) {
  auto number = parse_int(value);
  return number && *number > 0;
}

bool check_not_negative(std::string_view value, Faults&) {
  auto number = parse_int(value);
  return number && *number >= 0;
}

constexpr Applies kReload = Applies::OnReload;
constexpr Applies kStart = Applies::AtStart;

constexpr char kAuthQuery[] =
    "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END"
    " FROM pg_authid WHERE rolname=$1 AND rolcanlogin";

// The order is that of SHOW CONFIG in PgBouncer; our own options come last.
constexpr OptionRow kRows[] = {
    {"admin_users", &Options::admin_users, "", kReload,
     "Users who may run every command of the console, separated by commas or blanks."},
    {"application_name_add_host", &Options::application_name_add_host, "0", kReload,
     "Add the client's address to the application_name that the server sees."},
    {"auth_dbname", &Options::auth_dbname, nullptr, kReload,
     "Database on which auth_query runs; unset means the one the client asked for.", check_auth_dbname},
    {"auth_file", &Options::auth_file, nullptr, kReload, "File with the user names and passwords."},
    {"auth_hba_file", &Options::auth_hba_file, "", kReload, "Host-based rules, read when auth_type is hba."},
    {"auth_ident_file", &Options::auth_ident_file, nullptr, kReload,
     "Maps from system or certificate names to database users, read when auth_type is hba."},
    {"auth_ldap_options", &Options::auth_ldap_options, nullptr, kReload,
     "How to ask the directory when auth_type is ldap: ldapserver, ldapprefix, ldapbasedn ... as in an HBA file.",
     check_ldap_options},
    {"auth_query", &Options::auth_query, kAuthQuery, kReload,
     "Query that gives name and password of a user who is not in auth_file; $1 is the name."},
    {"auth_type", &Options::auth_type, "md5", kReload, "How clients prove who they are.", check_auth_type},
    {"auth_user", &Options::auth_user, nullptr, kReload,
     "User who runs auth_query; unset means that auth_query is not used."},
    {"autodb_idle_timeout", &Options::autodb_idle_timeout, "3600", kReload,
     "Forget a database made from the * entry after it was unused for this long."},
    {"cancel_wait_timeout", &Options::cancel_wait_timeout, "10", kReload,
     "Longest time a cancel request waits for a server connection; 0 waits for ever."},
    {"client_idle_timeout", &Options::client_idle_timeout, "0", kReload,
     "Close a client that sends nothing for this long outside a transaction; 0 never does."},
    {"client_login_timeout", &Options::client_login_timeout, "60", kReload,
     "Close a client that has not logged in within this time; 0 never does."},
    {"client_tls13_ciphers", &Options::client_tls13_ciphers, nullptr, kReload,
     "TLS 1.3 cipher suites offered to clients, as OpenSSL writes them."},
    {"client_tls_ca_file", &Options::client_tls_ca_file, "", kReload,
     "Certificates of the authorities that sign the certificates of clients."},
    {"client_tls_cert_file", &Options::client_tls_cert_file, "", kReload, "Certificate shown to clients."},
    {"client_tls_ciphers", &Options::client_tls_ciphers, "default", kReload,
     "Ciphers up to TLS 1.2 for clients, as OpenSSL writes them, or the word default."},
    {"client_tls_dheparams", &Options::client_tls_dheparams, "auto", kReload,
     "Diffie-Hellman key exchange with clients: auto or none."},
    {"client_tls_ecdhcurve", &Options::client_tls_ecdhcurve, "auto", kReload,
     "Elliptic curve for key exchange with clients: auto, none or the name of a curve."},
    {"client_tls_key_file", &Options::client_tls_key_file, "", kReload,
     "Private key that belongs to client_tls_cert_file."},
    {"client_tls_protocols", &Options::client_tls_protocols, "secure", kReload,
     "TLS versions allowed to clients: all, secure, or a list such as tlsv1.2,tlsv1.3."},
    {"client_tls_sslmode", &Options::client_tls_sslmode, "disable", kReload,
     "Whether clients may or must use TLS, and whether their certificate is checked."},
    {"conffile", &Options::conffile, nullptr, kReload,
     "File read by the next reload; unset means the one named on the command line."},
    {"default_pool_size", &Options::default_pool_size, "20", kReload,
     "Server connections for each pair of user and database; 0 means no limit."},
    {"disable_pqexec", &Options::disable_pqexec, "0", kStart, "Refuse the simple query protocol."},
    {"dns_max_ttl", &Options::dns_max_ttl, "15", kReload, "Longest time the addresses of a host name are remembered."},
    {"dns_nxdomain_ttl", &Options::dns_nxdomain_ttl, "15", kReload,
     "Time for which a failed look-up of a host name is remembered."},
    {"dns_zone_check_period", &Options::dns_zone_check_period, "0", kReload,
     "How often the serial numbers of zones are compared; names in one that has changed are looked up anew. 0 never."},
    {"idle_transaction_timeout", &Options::idle_transaction_timeout, "0", kReload,
     "Close a client that is idle inside a transaction for this long; 0 never does."},
    {"ignore_startup_parameters", &Options::ignore_startup_parameters, "", kReload,
     "Start-up parameters of clients that are accepted and left unused."},
    {"job_name", &Options::job_name, "pgbouncer", kStart, "Accepted for compatibility and unused."},
    {"listen_addr", &Options::listen_addr, "", kStart,
     "Addresses to listen on for TCP, separated by commas; * means all, empty means none."},
    {"listen_backlog", &Options::listen_backlog, "128", kStart,
     "Connections the kernel queues for each listening socket."},
    {"listen_port", &Options::listen_port, "6432", kStart,
     "Port of the TCP sockets, and number in the name of the unix socket."},
    {"log_connections", &Options::log_connections, "1", kReload, "Log every login."},
    {"log_disconnections", &Options::log_disconnections, "1", kReload,
     "Log every end of a connection, with its reason."},
    {"log_pooler_errors", &Options::log_pooler_errors, "1", kReload,
     "Log every error the pooler itself sends to a client."},
    {"log_stats", &Options::log_stats, "1", kReload, "Log a line of statistics each stats_period."},
    {"logfile", &Options::logfile, "", kReload, "File to which log lines are appended; a reload opens it anew."},
    {"login_notify_message", &Options::login_notify_message, "", kReload,
     "Text of a notice sent to every client that logs in; empty sends none."},
    {"max_client_conn", &Options::max_client_conn, "100", kReload, "Most client connections at a time."},
    {"max_db_client_connections", &Options::max_db_client_connections, "0", kReload,
     "Most client connections of one database; 0 means no limit."},
    {"max_db_connections", &Options::max_db_connections, "0", kReload,
     "Most server connections of one database, whatever the user; 0 means no limit."},
    {"max_packet_size", &Options::max_packet_size, "2147483647", kReload,
     "Longest message in bytes that is let through.", nullptr, "bytes"},
    {"max_prepared_statements", &Options::max_prepared_statements, "200", kReload,
     "Prepared statements kept on each server connection; 0 turns tracking off."},
    {"max_user_client_connections", &Options::max_user_client_connections, "0", kReload,
     "Most client connections of one user; 0 means no limit."},
    {"max_user_connections", &Options::max_user_connections, "0", kReload,
     "Most server connections of one user, whatever the database; 0 means no limit."},
    {"min_pool_size", &Options::min_pool_size, "0", kReload, "Server connections kept open in a pool that is in use."},
    {"peer_id", &Options::peer_id, "0", kReload,
     "Number of this process among its peers, 1 to 16383; 0 means no peering.", check_peer_id},
    {"pidfile", &Options::pidfile, "", kStart, "File that holds the process id; empty writes none."},
    {"pkt_buf", &Options::pkt_buf, "4096", kStart,
     "Bytes of the buffer of a connection; it never limits the length of a message.", check_positive, "bytes"},
    {"pool_mode", &Options::pool_mode, "session", kReload, "When a server connection becomes free for another client."},
    {"pool_idle_timeout", &Options::pool_idle_timeout, "0", kReload,
     "Forget a pool that was unused for this long; 0 never does."},
    {"query_timeout", &Options::query_timeout, "0", kReload, "Longest time a query may run; 0 means no limit."},
    {"query_wait_notify", &Options::query_wait_notify, "5", kReload,
     "Tell a client by a notice that it waits for a server after this many seconds; 0 never does.", nullptr, "seconds"},
    {"query_wait_timeout", &Options::query_wait_timeout, "120", kReload,
     "Longest time a query waits for a server connection; 0 waits for ever."},
    {"reserve_pool_size", &Options::reserve_pool_size, "0", kReload,
     "Further server connections of a pool whose clients wait too long."},
    {"reserve_pool_timeout", &Options::reserve_pool_timeout, "5", kReload,
     "How long a client waits before the reserve is used."},
    {"resolv_conf", &Options::resolv_conf, "", kStart, "Resolver configuration file to use in place of the system's."},
    {"sbuf_loopcnt", &Options::sbuf_loopcnt, "5", kReload,
     "Reads from one connection before others get their turn; 0 means no limit."},
    {"scram_iterations", &Options::scram_iterations, "4096", kReload,
     "Rounds of hashing for SCRAM secrets derived from plain passwords.", check_positive},
    {"server_check_delay", &Options::server_check_delay, "30", kReload,
     "A server connection idle for longer is checked before it is used again."},
    {"server_check_query", &Options::server_check_query, "<empty>", kReload,
     "Query of that check: <empty> sends an empty one, no text at all turns checks off."},
    {"server_connect_timeout", &Options::server_connect_timeout, "15", kReload,
     "Longest time to connect and log in to a server."},
    {"server_fast_close", &Options::server_fast_close, "0", kReload,
     "In session mode, close servers that must go right after their transaction."},
    {"server_idle_timeout", &Options::server_idle_timeout, "600", kReload,
     "Close a server connection that was idle for this long; 0 never does."},
    {"server_lifetime", &Options::server_lifetime, "3600", kReload,
     "Close a server connection this old once it is free; 0 means it is used once."},
    {"server_login_retry", &Options::server_login_retry, "15", kReload,
     "Time before a failed connection to a server is tried again."},
    {"server_reset_query", &Options::server_reset_query, "DISCARD ALL", kReload,
     "Query that cleans a server connection after a session."},
    {"server_reset_query_always", &Options::server_reset_query_always, "0", kReload,
     "Run server_reset_query in every pool mode, not in session mode alone."},
    {"server_round_robin", &Options::server_round_robin, "0", kReload,
     "Use the server connection idle for longest in place of the one used last."},
    {"server_tls13_ciphers", &Options::server_tls13_ciphers, nullptr, kReload,
     "TLS 1.3 cipher suites offered to servers, as OpenSSL writes them."},
    {"server_tls_ca_file", &Options::server_tls_ca_file, "", kReload,
     "Certificates of the authorities that sign the certificates of servers."},
    {"server_tls_cert_file", &Options::server_tls_cert_file, "", kReload, "Certificate shown to servers."},
    {"server_tls_ciphers", &Options::server_tls_ciphers, "default", kReload,
     "Ciphers up to TLS 1.2 for servers, as OpenSSL writes them, or the word default."},
    {"server_tls_key_file", &Options::server_tls_key_file, "", kReload,
     "Private key that belongs to server_tls_cert_file."},
    {"server_tls_protocols", &Options::server_tls_protocols, "secure", kReload,
     "TLS versions allowed to servers: all, secure, or a list such as tlsv1.2,tlsv1.3."},
    {"server_tls_sslmode", &Options::server_tls_sslmode, "prefer", kReload,
     "Whether servers may or must use TLS, and how far their certificate is checked."},
    {"so_reuseport", &Options::so_reuseport, "0", kStart, "Let several processes listen on the same port."},
    {"stats_period", &Options::stats_period, "60", kReload,
     "Seconds between the lines of statistics, and span of the averages.", nullptr, "seconds"},
    {"stats_users", &Options::stats_users, "", kReload, "Users who may run the reading commands of the console."},
    {"suspend_timeout", &Options::suspend_timeout, "10", kReload,
     "Close connections whose buffers cannot be emptied within this time by SUSPEND."},
    {"syslog", &Options::syslog, "0", kReload, "Log to syslog too."},
    {"syslog_facility", &Options::syslog_facility, "daemon", kReload,
     "Facility for syslog: auth, authpriv, daemon, user or local0 to local7.", check_facility},
    {"syslog_ident", &Options::syslog_ident, "pgbouncer", kReload, "Name of the program in syslog."},
    {"tcp_defer_accept", &Options::tcp_defer_accept, "1", kReload,
     "Let the kernel hand over a connection only when it has sent something."},
    {"tcp_keepalive", &Options::tcp_keepalive, "1", kReload, "Let the kernel probe idle connections."},
    {"tcp_keepcnt", &Options::tcp_keepcnt, "0", kReload,
     "Unanswered probes after which a connection is dead; 0 leaves it to the system."},
    {"tcp_keepidle", &Options::tcp_keepidle, "0", kReload,
     "Idle seconds before the first probe; 0 leaves it to the system.", nullptr, "seconds"},
    {"tcp_keepintvl", &Options::tcp_keepintvl, "0", kReload, "Seconds between probes; 0 leaves it to the system.",
     nullptr, "seconds"},
    {"tcp_socket_buffer", &Options::tcp_socket_buffer, "0", kReload,
     "Bytes of the kernel's buffers of a connection; 0 leaves it to the system.", nullptr, "bytes"},
    {"tcp_user_timeout", &Options::tcp_user_timeout, "0", kReload,
     "Milliseconds that sent data may stay unacknowledged; 0 leaves it to the system.", nullptr, "milliseconds"},
    {"track_extra_parameters", &Options::track_extra_parameters, "IntervalStyle", kStart,
     "Further parameters that follow the client from server to server."},
    {"transaction_timeout", &Options::transaction_timeout, "0", kReload,
     "Longest time a transaction may last; 0 means no limit."},
    {"unix_socket_dir", &Options::unix_socket_dir, "/tmp", kStart,
     "Folder of the unix socket; @name is an abstract one, empty means none."},
    {"unix_socket_group", &Options::unix_socket_group, "", kStart,
     "Group that owns the unix socket, by name or number."},
    {"unix_socket_mode", &Options::unix_socket_mode, "0777", kStart, "Access bits of the unix socket."},
    {"user", &Options::user, nullptr, kStart, "System user to become after the start as root."},
    {"verbose", &Options::verbose, nullptr, kReload,
     "How much is logged: 1 adds debugging lines, 2 adds every detail."},
    {"hold_back_buffer", &Options::hold_back_buffer, "262144", kReload,
     "Bytes of a direct answer that are held back for a client until the cloud's check has passed.", nullptr, "bytes"},
    {"max_routed_message", &Options::max_routed_message, "1048576", kReload,
     "A batch of more bytes is not gathered for plugins, and so never direct.", nullptr, "bytes"},
    {"plugins", &Options::plugins, "", kStart,
     "Plugins that decide where statements run, in the order they are asked; each has a section of its own."},
    {"pin_session_state", &Options::pin_session_state, "0", kReload,
     "In transaction and statement pooling, leave a client that makes session state (LISTEN, session locks, temporary "
     "tables, cursors WITH HOLD, SET of settings that do not follow it) its server until it goes, as in session "
     "pooling. Otherwise that state ends when the server goes back to the pool."},
    {"strict_startup_parameters", &Options::strict_startup_parameters, "0", kReload,
     "Refuse start-up parameters as PgBouncer does: all but client_encoding, DateStyle, TimeZone, "
     "standard_conforming_strings, application_name and those of track_extra_parameters. Otherwise these are taken, "
     "too: IntervalStyle, search_path, statement_timeout, lock_timeout, idle_in_transaction_session_timeout, "
     "client_min_messages, extra_float_digits, bytea_output, default_transaction_isolation, "
     "default_transaction_read_only, default_transaction_deferrable."},
    {"server_tls_direct", &Options::server_tls_direct, "0", kReload,
     "Begin TLS with servers at once, without asking for it (PostgreSQL 17 and newer); server_tls_sslmode has to be "
     "require, verify-ca or verify-full."},
    {"worker_threads", &Options::worker_threads, "0", kStart,
     "Threads that serve connections; 0 means one for each CPU the process may use.", check_not_negative},
};

}  // namespace

std::span<const OptionRow> option_rows() { return kRows; }

}  // namespace lokadb
