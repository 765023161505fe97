// What connections belong to: databases, users and pools (one for each pair of them), all shared by every worker.
//
// Rules of access:
//   [config]  changes only while the world is stopped (Pooler::run_alone), so workers read it freely;
//   [lock]    guarded by Pooler's lock;
//   the rest  says so itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/list.h"
#include "base/log_rate.h"
#include "config/config.h"
#include "net/address.h"
#include "pool/parameters.h"
#include "pool/result_forms.h"
#include "pool/stats.h"
#include "proto/scram.h"

namespace lokadb {

class ClientSession;
class ServerConnection;
class Pool;
struct IdleTag;
struct WaitTag;

// What a pool's first server told at login: given to clients that log in.
struct Welcome {
  std::vector<std::byte> untracked;  // ParameterStatus messages, ready to send
  ParameterSetPtr tracked;
};

// What servers were last found to let in: those who ask for 3.2, though they may know an older one only, or nobody but
// those who ask for 3.0.
enum class ServerProtocol : std::uint8_t { Unknown, Old, New };

struct Database {
  explicit Database(std::string n) : name(std::move(n)) {}
  const std::string name;
  std::shared_ptr<const DatabaseConfig> config;                     // [config]; never null
  bool is_console = false;                                          // the database "pgbouncer"
  bool is_auto = false;                                             // made from "*"; [config]
  bool is_target = false;                                           // of direct batches; no client connects to it
  std::string greeting;                                             // [config] asked right after each server's login
  bool is_disabled = false;                                         // [config] (DISABLE)
  bool is_paused = false;                                           // [config] (PAUSE db, KILL)
  int server_count = 0;                                             // [lock] those in login and cancel connections too
  int client_count = 0;                                             // [lock]
  std::int64_t unused_since = 0;                                    // [lock] monotonic; 0: in use
  KnownForms forms;                                                 // of statements that go direct
  LogRate target_faults{1'000'000};                                 // lines about organizations that cannot be used
  ServerProtocol server_protocol = ServerProtocol::Unknown;         // [lock]
  std::map<std::string, std::unique_ptr<Pool>, std::less<>> pools;  // [lock] by user name
};

struct User {
  explicit User(std::string n) : name(std::move(n)) {}
  const std::string name;
  UserConfig config;      // [config]; all unset for a user without an entry
  int server_count = 0;   // [lock]
  int client_count = 0;   // [lock]
  bool is_known = false;  // [lock] has logged in or stands in a file: shown by SHOW USERS
  // [lock] What a SCRAM login of a client left, and the verifier it was proven against: usable for server logins with
  // the same verifier.
  std::optional<ScramKeys> scram_keys;
  std::string scram_keys_secret;
  // [lock] The verifier made from a plain secret, so that the costly derivation is done once.
  std::optional<ScramVerifier> verifier;
  std::string verifier_secret;
};

// The settings of a pool with all defaults filled in; made anew at reload.
struct PoolSettings {
  PoolMode mode = PoolMode::Session;
  int size = 0;  // 0: no limit
  int min_size = 0;
  int reserve = 0;
  int max_db_connections = 0;
  int max_user_connections = 0;
  std::int64_t server_lifetime = 0;  // microseconds, all of these
  std::int64_t query_wait_timeout = 0;
  std::int64_t query_timeout = 0;
  std::int64_t idle_transaction_timeout = 0;
  std::int64_t transaction_timeout = 0;
};

class Pool {
 public:
  Pool(Database& d, User& u, std::size_t workers) : database(d), user(u), counters(workers) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Database& database;
  User& user;             // the server connections' user: the forced one if the database has one
  PoolSettings settings;  // [config]
  int generation = 0;     // [config] servers of an earlier one are obsolete

  // [lock] from here on
  List<ServerConnection, IdleTag> idle;     // front: taken next
  List<ClientSession, WaitTag> waiters;     // front: waits for longest
  List<ClientSession, WaitTag> newcomers;   // logged in, waiting for the welcome
  List<ClientSession, WaitTag> replicants;  // the same, each for a connection of its own (replication)
  int server_count = 0;                     // all, those in login too
  int client_count = 0;
  int cancel_count = 0;  // cancel connections open now
  bool login_running = false;
  int testing_count = 0;                 // servers being checked before use
  std::int64_t last_connect_failed = 0;  // monotonic; 0: the last one succeeded
  std::string last_login_error;          // message and SQLSTATE of the server's refusal; empty: no refusal
  std::string last_login_state;
  std::int64_t last_lifetime_close = 0;
  std::shared_ptr<const Welcome> welcome;  // null: not known yet
  std::atomic<std::uint64_t> changes = 0;  // of its servers: logins, and ends. Read without the lock
  std::size_t next_host = 0;
  std::int64_t unused_since = 0;
  // What auth_query said of the pool's user when he last logged in, and what his SCRAM login against it left.
  std::string looked_up_secret;
  std::optional<ScramKeys> looked_up_keys;

  // One block per worker, written by that worker alone.
  std::vector<PoolCounters> counters;
  CounterValues sum() const {
    CounterValues out;
    for (const auto& block : counters) out.add(block);
    return out;
  }
  // SHOW STATS averages: totals at the last two marks. Main thread.
  CounterValues older_mark, newer_mark;
};

}  // namespace lokadb
