// PAUSE, SUSPEND, WAIT_CLOSE and the kinds of SHUTDOWN: what begins them, and when they are done. Console sessions that
// wait for one are answered then. Main thread, world stopped, except where said.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "admin/process_control.h"
#include "pool/pooler.h"

namespace lokadb {

class Lifecycle {
 public:
  // Done, or given up (ok == false) because somebody resumed meanwhile.
  using Finished = std::function<void(std::uint64_t session_id, const char* tag, bool ok)>;

  Lifecycle(Pooler& pooler, ProcessControl& control) : pooler_(pooler), control_(control) {}
  void on_finished(Finished fn) { finished_ = std::move(fn); }

  // session_id 0: nobody waits for it (signals).
  void pause_all(std::uint64_t session_id);
  void pause(Database& database, std::uint64_t session_id);
  void suspend(std::uint64_t session_id);
  void wait_close(Database* only, std::uint64_t session_id);
  void shut_down(ShutdownMode mode);
  // Ends pause or suspension of all; false: there was none.
  bool resume_all();
  void resume(Database& database);

  // The session that waited has gone or was cancelled: its pause is taken back.
  void abandoned(std::uint64_t session_id);

  // Main thread, often: whether something waited for has come.
  void check();

 private:
  enum class Kind : std::uint8_t { Pause, PauseDatabase, Suspend, WaitClose };
  struct Waiting {
    std::uint64_t session_id;
    Kind kind;
    std::string database;  // empty: all
    std::int64_t since;
  };

  void check_alone();
  bool is_done(const Waiting& waiting) const;
  bool is_drained() const;
  void enforce_suspend_timeout(std::int64_t since);
  void close_idle_servers(const Database* only);
  void end_waits(Kind kind, bool ok);
  bool shutdown_is_complete() const;

  Pooler& pooler_;
  ProcessControl& control_;
  Finished finished_;
  std::vector<Waiting> waiting_;
  std::uint64_t suspended_by_ = 0;  // whose SUSPEND holds; its going away ends it
};

}  // namespace lokadb
