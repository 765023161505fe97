// The heart of the process: workers, databases, users, pools, and the one lock under which servers are given to
// clients, taken back and opened. Limits over several pools (of a database, of a user) need one view of all of
// them, so it is one lock and not one per pool; it is held for tens of nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "net/helper_threads.h"
#include "net/socket.h"
#include "net/tls.h"
#include "plugin/batch_target.h"
#include "pool/database.h"
#include "pool/gates.h"
#include "pool/worker.h"

namespace lokadb {

class ClientSession;
class PluginChain;
class ServerConnection;

// The admin console as sessions see it (implemented in src/admin).
class ConsoleBackend {
 public:
  virtual ~ConsoleBackend() = default;
  // A message of a console session, which reads no further until it was answered (ClientSession::console_answered).
  // Main thread, world stopped.
  virtual void message(std::uint64_t session_id, char type, std::string body) = 0;
  // The session with this id has gone, or cancelled what it waits for. Main thread, world stopped.
  virtual void abandoned(std::uint64_t session_id) = 0;
  // What a session is greeted with: ParameterStatus messages.
  virtual void greet(ByteBuffer& out) const = 0;
};

enum class PauseMode : std::uint8_t { None, Paused, Suspended };
enum class ShutdownMode : std::uint8_t { None, WaitForServers, WaitForClients, Immediate };

// How an attempt to get a server went.
enum class Acquired : std::uint8_t {
  Linked,   // the session has a server of its own worker
  Queued,   // it waits, or a server is on its way
  Refused,  // it was closed
};

class Pooler {
 public:
  Pooler(ConfigPtr config, int worker_count);
  ~Pooler();

  // --- fixed at start
  const TrackedNames tracked;
  std::vector<std::unique_ptr<Worker>> workers;
  Worker& main_worker() { return *workers.front(); }
  ConsoleBackend* console = nullptr;
  PluginChain* plugins = nullptr;  // null: none are configured, and everything goes to the database asked for
  // What plugins know of a database is asked anew; `then` is called on any thread.
  std::function<void(const std::string& database, const std::function<void()>& then)> refresh_feeds;
  std::int64_t started_us;
  // SHOW STATS averages: when the pools' last two marks were set, the start at first. Monotonic; main thread.
  std::int64_t older_mark_time, newer_mark_time;

  // --- [config]: changes only while the world is stopped
  ConfigPtr config;
  std::shared_ptr<const TlsContext> client_tls;  // null: off
  std::shared_ptr<const TlsContext> server_tls;
  bool has_client_idle_timeouts = false;
  bool has_short_limits = false;  // some time limit of idle or working connections is short, or pools are to be filled
  PauseMode pause_mode = PauseMode::None;
  ShutdownMode shutdown_mode = ShutdownMode::None;
  bool somebody_waits = false;  // for the end of a console command, so that the main thread has to look often; its own
  // A successor has been given the connections (SHOW FDS while suspended): they are not to be touched any more, unless
  // it dies before it says SHUTDOWN.
  bool is_handed_over = false;
  const Options& options() const { return config->options; }
  TcpTuning tcp_tuning() const;

  // Runs `fn` on the main thread while every other worker stands still between two turns of its loop: then everything
  // may be read and changed. For the console, reloads and signals, not for statements. Main thread.
  void run_alone(const std::function<void()>& fn);
  // The same from any worker, later.
  void run_alone_later(std::function<void()> fn);

  // --- any thread
  std::uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::atomic<int> client_total{0};  // all client sockets

  // For what blocks. Any thread.
  HelperThreads helpers;
  Gates gates;

  std::mutex lock;

  // The database of this name, made from "*" if need be; null if there is none. [lock] held.
  // log_name says who asks, if that has to be logged.
  Database* find_database(std::string_view name, const std::function<std::string()>& log_name = nullptr);
  User& user(std::string_view name);                                        // [lock] held
  Pool& pool(Database& database, std::string_view user_name);               // [lock] held
  std::map<std::string, std::unique_ptr<Database>, std::less<>> databases;  // [lock] or world stopped
  std::map<std::string, std::unique_ptr<User>, std::less<>> users;          // [lock] or world stopped
  // By the process number that they were given, which statements may name. Several have the same only where all are in
  // use (processes with peers have few): then it means none of them.
  std::unordered_multimap<std::uint32_t, ClientSession*> numbers;  // [lock]

  std::map<int, int> peer_connections;  // [lock] cancel requests on their way to each peer

  // Takes [lock] itself. Gives the session a server, or queues it in its pool. Worker of the session.
  Acquired acquire(ClientSession& session);
  // Takes [lock] itself. A server of the session's own pool, linked to it beside its leg, if one is idle on its worker
  // and nobody waits; else null.
  ServerConnection* take_free(ClientSession& session);
  // Takes [lock] itself. The pool for a database that plugins send statements to, made if there is none. Worker.
  Pool& target_pool(const BatchTargetPtr& to);
  // Takes [lock] itself. The server is free: it goes to the next waiter, to the idle list, or is closed. Its worker.
  void release(ServerConnection& server);
  // Takes [lock] itself. Opens a server connection for the pool on this worker if one is wanted and allowed.
  void launch_if_wanted(Pool& pool, Worker& worker);
  // Takes [lock] itself. The login of `server` ended well: newcomers are welcomed, and the server is released.
  void login_done(ServerConnection& server, std::shared_ptr<const Welcome> welcome);
  // The same for a connection that is one client's (replication), who has it from now on.
  void dedicated_login_done(ServerConnection& server);
  // A connect or login failed. `refusal`: the server's own error, null if there was none (it could not be reached).
  // Takes [lock] itself.
  void login_failed(ServerConnection& server, const Error* refusal);
  // [lock] held. The counts of a server that is being closed go down.
  void forget_server(ServerConnection& server);

  // New values of the tables and of every pool's settings after `config` changed. World stopped.
  void apply_config(ConfigPtr next);
  void refresh_settings(Pool& pool);
  // Marks servers obsolete. World stopped.
  void tag_dirty(Pool& pool);
  void drop_database(Database& database, const char* why);

  // Main thread, with its worker's tick.
  void tick();
  // Opens connections for pools whose clients wait, where that had to be put off. Takes [lock] itself.
  void launch_for_waiters(Worker& worker);
  // Whether what a PAUSE, SUSPEND or shutdown waits for has come. World stopped.
  bool servers_gone(const Database* only) const;

  void for_each_pool(const std::function<void(Pool&)>& fn);                // [lock] or world stopped
  void for_each_server(const std::function<void(ServerConnection&)>& fn);  // world stopped
  void for_each_client(const std::function<void(ClientSession&)>& fn);     // world stopped

  // Clients get servers again after a pause. World stopped.
  void kick(Pool& pool);
  // All clients and servers of a database are closed. World stopped.
  void close_everything_of(const Database& database, const char* why);

  // Called at the end of tick(): what pauses and shutdowns wait for, statistics.
  std::function<void()> on_tick;

  // Ends the process' loops. Main thread.
  void stop_all();

 private:
  void close_all();
  bool find_short_limits();
  void fill_pools();
  // Idle servers of a pool that a client could have.
  struct Choice {
    ServerConnection* own = nullptr;
    ServerConnection* foreign = nullptr;
    ServerConnection* stale = nullptr;
  };
  enum class Launch : std::uint8_t { No, Yes, EvictOfPool, EvictOfDatabase, EvictOfUser };
  enum class LaunchFor : std::uint8_t { Waiters, Minimum, Replication };
  struct Dropped {
    std::int64_t when;
    std::unique_ptr<Database> database;
  };
  struct DroppedPool {
    std::int64_t when;
    std::unique_ptr<Pool> pool;
  };
  static constexpr std::int64_t kDroppedKept = 10'000'000;  // microseconds: longer than any message is under way

  Choice choose_idle(Pool& pool, const Worker& worker, std::int64_t now);
  bool may_serve(const Pool& pool) const;
  bool login_keeps_failing(const Pool& pool, std::int64_t now) const;
  void try_again(ClientSession& client);
  void look_at_input(ServerConnection& server);
  void serve_from_idle(Pool& pool);
  void send_to(ServerConnection& server, ClientSession& client);
  void put_idle(ServerConnection& server);
  bool is_wanted(const Pool& pool) const;
  Launch may_launch(Pool& pool, std::int64_t now, LaunchFor purpose);
  ServerConnection* take_victim(Pool& pool, Launch why);
  void reserve_place(Pool& pool);
  ServerConnection* new_server(Pool& pool, Worker& worker);
  ClientSession* next_replicant(Pool& pool) const;
  void open_dedicated(Pool& pool, ClientSession& client, bool is_here);
  void fill_to_minimum(Pool& pool, Worker& worker);
  void drop_unused(std::int64_t now);
  void drop_pool(Pool& pool, std::int64_t now);

  std::atomic<std::uint64_t> next_id_{0};
  bool is_stopping_ = false;  // main thread
  std::vector<Dropped> dropped_;
  std::vector<DroppedPool> dropped_pools_;
};

}  // namespace lokadb
