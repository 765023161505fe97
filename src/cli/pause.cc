#include "cli/pause.h"

#include <cstdio>
#include <thread>

namespace lokadb::cli {

namespace {
constexpr auto kRest = std::chrono::milliseconds(500);
}

Pause::Pause(Connection& db, const std::string& org, bool with_moves, double timeout) : db_(db), org_(org) {
  using std::chrono::steady_clock;
  auto deadline = steady_clock::now() + std::chrono::duration<double>(timeout);
  db_.query("SELECT lokadb.tell($1, 'pausing')", {org_});
  while (!try_once(with_moves)) {
    if (steady_clock::now() >= deadline)
      throw Failure{"organization " + org_ + " could not be paused in time, nothing has changed; held by " + holders(),
                    kRefused, "55P03"};
    std::this_thread::sleep_for(kRest);
  }
  since_ = steady_clock::now();
}

Pause::~Pause() {
  try {
    db_.run("SELECT pg_advisory_unlock_all()");
  } catch (const Failure&) {  // the session has ended, and the locks with it
  }
}

bool Pause::try_once(bool with_moves) {
  try {
    db_.run("SET lock_timeout = '1s'");
    db_.query("SELECT pg_advisory_lock(lokadb.pause_key($1))", {org_});
    if (with_moves) db_.query("SELECT pg_advisory_lock(lokadb.pause_key('*'))");
    db_.run("RESET lock_timeout");
    return true;
  } catch (const Failure& failure) {
    if (failure.state != "55P03" && failure.state != "40P01") throw;
    db_.run("SELECT pg_advisory_unlock_all(); RESET lock_timeout");
    return false;
  }
}

std::string Pause::holders() const {
  std::string all = db_.value(
      "SELECT string_agg(DISTINCT format('%s, process %s, %s', who, pid, state), '; ') FROM (SELECT * FROM "
      "lokadb.holders($1) UNION ALL SELECT * FROM lokadb.holders('*')) h WHERE granted AND pid <> pg_backend_pid()",
      {org_});
  return all.empty() ? "somebody who has just finished" : all;
}

double Pause::seconds_held() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

}  // namespace lokadb::cli
