// Takes back a move that failed or was cut off, on the way there or home.
#include <thread>

#include "cli/move_org.h"

namespace lokadb::cli {

namespace {

constexpr int kLockTries = 50;

// The session of the move, which holds its lock, or if that has died another one with the lock. What nobody else may do
// meanwhile is to begin another move.
class MoveSession {
 public:
  MoveSession(Connection& old, const std::string& db, const std::string& org) : now_(&old) {
    try {
      old.query("SELECT 1");
      return;
    } catch (const Failure&) {  // it has died
    }
    fresh_ = std::make_unique<Connection>(db, "lokadb move-org");
    now_ = fresh_.get();
    for (int i = 0; !try_lock_move(*now_, org); ++i) {  // the server may notice a moment later
      if (i == kLockTries) throw Failure{"somebody else is moving it"};
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  Connection& operator*() const { return *now_; }

 private:
  std::unique_ptr<Connection> fresh_;
  Connection* now_;
};

bool has_moved(Connection& cloud, const std::string& org) {
  return !cloud.value("SELECT 1 FROM lokadb.organizations WHERE org = $1 AND server IS NOT NULL", {org}).empty();
}

}  // namespace

bool try_lock_move(Connection& cloud, const std::string& org) {
  return cloud.value("SELECT pg_try_advisory_lock(hashtextextended('lokadb.move:' || $1, 0))", {org}) == "t";
}

Undone undo_move(Connection& session, const std::string& db, const std::string& to, const std::string& org) {
  const std::string home = "organization " + org + " is at home as before";
  try {
    MoveSession cloud(session, db, org);
    // The swap may have been committed though its answer was lost.
    if (has_moved(*cloud, org)) return {false, "organization " + org + " HAS moved: the swap was committed"};
    in_transaction(*cloud, [&] { (*cloud).query("SELECT lokadb.move_undo($1)", {org}); });
    try {
      Connection target(to, "lokadb move-org");
      Target(*cloud, target, org, {}, {}).drop_tables();
    } catch (const Failure& failure) {
      return {true, home + "; what was made in its new database is still there (" + failure.text +
                        "): move it there again, or drop the tables"};
    }
    return {true, home};
  } catch (const Failure& failure) {
    return {false, home + ", but what was begun could not be cleared away (" + failure.text +
                       "): run lokadb move-org -undo when both databases answer"};
  }
}

Undone undo_return(Connection& session, const std::string& db, const std::string& to, const std::string& org) {
  const std::string away = "organization " + org + " is in its own database as before";
  try {
    MoveSession cloud(session, db, org);
    if (!has_moved(*cloud, org)) return {false, "organization " + org + " HAS come home: the swap was committed"};
    (*cloud).query("SELECT lokadb.drop_staging($1)", {org});
    Connection target(to, "lokadb move-org");
    Target place(*cloud, target, org, {}, {});
    place.check_label();
    place.allow_writers();
    return {true, away};
  } catch (const Failure& failure) {
    return {false, away + ", but may not be written there (" + failure.text +
                       "): run lokadb move-org -undo when both databases answer"};
  }
}

}  // namespace lokadb::cli
