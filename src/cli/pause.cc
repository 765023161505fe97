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
    let_go();
  } catch (const Failure&) {  // the session has ended, and the locks with it
  }
}

void Pause::take(const std::string& what) {
  db_.query("SELECT pg_advisory_lock(lokadb.pause_key($1))", {what});
  taken_.push_back(what);
}

// Not pg_advisory_unlock_all(): the session may hold the lock of a move besides, which must last.
void Pause::let_go() {
  for (; !taken_.empty(); taken_.pop_back())
    db_.query("SELECT pg_advisory_unlock(lokadb.pause_key($1))", {taken_.back()});
}

bool Pause::try_once(bool with_moves) {
  db_.run("SET lock_timeout = '1s'");
  try {
    take(org_);
    if (with_moves) take("*");
  } catch (const Failure& failure) {
    if (failure.state != "55P03" && failure.state != "40P01") throw;
    let_go();
    db_.run("SET lock_timeout = 0");
    return false;
  }
  db_.run("SET lock_timeout = 0");
  return true;
}

std::string Pause::holders() const {
  std::string all = db_.value(
      "SELECT string_agg(DISTINCT concat_ws(', ', who, 'process ' || pid, state), '; ') FROM (SELECT * FROM "
      "lokadb.holders($1) UNION ALL SELECT * FROM lokadb.holders('*')) h WHERE granted AND pid IS DISTINCT FROM "
      "pg_backend_pid()",
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
