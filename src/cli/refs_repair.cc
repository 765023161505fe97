#include "cli/refs_repair.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "cli/installed.h"
#include "cli/organization.h"
#include "cli/pause.h"

namespace lokadb::cli {

namespace {

using std::chrono::milliseconds;

constexpr auto kGrace = milliseconds(1000);  // between two looks: most transactions in flight have ended then
constexpr auto kRest = milliseconds(300);    // between attempts to get at a key that somebody holds
constexpr int kAttempts = 8;
constexpr std::size_t kChunk = 500;         // keys in one transaction
constexpr double kLongestPauseSeconds = 1;  // at a stretch: far below the limit of those who wait
constexpr std::size_t kManyEntries = 1000;  // see takes_most()
constexpr int kPasses = 3;                  // an entry that is removed can make way for one of another organization

bool is_busy(const Failure& failure) {
  return failure.state == "55P03" || failure.state == "40P01" || failure.state == "40001" || failure.state == "57014";
}

bool shows_progress() { return isatty(STDERR_FILENO) == 1; }

// Half of the entries without a row look like a database that was emptied or is another one, not like an accident.
bool takes_most(Connection& cloud, const std::string& table, const std::string& org, std::size_t stale) {
  if (stale <= kManyEntries) return false;
  std::string all = cloud.value("SELECT lokadb.refs_count($1::regclass, $2)", {table, org});
  return stale * 2 > static_cast<std::size_t>(std::stoull(all));
}

Keys without(const Keys& keys, const std::set<std::string>& taken) {
  Keys rest;
  for (const std::string& key : keys)
    if (!taken.contains(key)) rest.push_back(key);
  return rest;
}

}  // namespace

RefsRepair::RefsRepair(const Flags& flags, bool dry)
    : dry_(dry),
      accepts_many_(flags.has("accept-many")),
      timeout_(flags.seconds("timeout", 60)),
      cloud_(flags.get("db"), "lokadb refs"),
      second_(flags.get("db"), "lokadb refs") {
  check_installed(cloud_);
  std::string only_org = flags.has("org") ? canonical_org(cloud_, flags.get("org")) : "";
  second_.run("SET row_security = off");  // a role that may not see all rows is refused
  find_tables(flags.get("table"));
  std::vector<std::unique_ptr<RefsPlace>> moved = RefsPlace::moved(cloud_, second_);
  bool at_home = std::none_of(moved.begin(), moved.end(), [&](auto& p) { return p->org() == only_org; });
  places_.push_back(RefsPlace::home(cloud_, second_, at_home ? only_org : ""));
  places_.front()->is_wanted = at_home;
  for (auto& place : moved) {
    place->is_wanted = only_org.empty() || place->org() == only_org;
    places_.push_back(std::move(place));
    try {
      places_.back()->open(flags);
    } catch (const Failure& failure) {
      fail(*places_.back(), places_.back()->name(), failure);
    }
  }
}

void RefsRepair::find_tables(const std::string& wanted) {
  Rows rows = cloud_.query(
      "SELECT t.tbl::text FROM lokadb.tables t WHERE $1 = '' OR t.tbl = to_regclass(CASE WHEN "
      "array_length(parse_ident($1), 1) = 1 THEN 'public.' || $1 ELSE $1 END) ORDER BY t.position",
      {wanted});
  for (int i = 0; i < rows.size(); ++i) tables_.push_back(rows.get(i, 0));
  if (!wanted.empty() && tables_.empty()) throw Failure{"table " + wanted + " is not under LokaDB"};
}

void RefsRepair::run() {
  for (int pass = 0; pass < kPasses && run_once(); ++pass) {
  }
  for (const std::string& table : tables_) move_sequences(table);
}

// Whether another pass may settle what is left.
bool RefsRepair::run_once() {
  std::size_t repaired = repaired_.size();
  left_.clear();
  bool found = false;
  for (auto& place : places_) {
    look(*place);
    found = found || !place->candidates.empty();
  }
  if (found) std::this_thread::sleep_for(kGrace);
  for (auto& place : places_) {
    std::vector<Candidate> before = std::move(place->candidates), both;
    if (before.empty()) continue;
    look(*place);
    std::set_intersection(before.begin(), before.end(), place->candidates.begin(), place->candidates.end(),
                          std::back_inserter(both));
    settle_place(*place, chunks_of(both));
  }
  auto is_conflict = [](const Finding& f) { return f.kind == Finding::Kind::Conflict; };
  return !dry_ && repaired_.size() > repaired && std::any_of(left_.begin(), left_.end(), is_conflict);
}

void RefsRepair::look(RefsPlace& place) {
  place.candidates.clear();
  if (!place.is_wanted || place.has_failed) return;
  if (shows_progress()) std::fprintf(stderr, "looking at %s\n", place.name().c_str());
  try {
    place.candidates = place.look(tables_);
  } catch (const Failure& failure) {
    fail(place, place.name(), failure);
  }
}

// One organization at a time: each has a pause of its own.
void RefsRepair::settle_place(RefsPlace& place, const std::vector<Chunk>& chunks) {
  for (auto begin = chunks.begin(); begin != chunks.end() && !place.has_failed;) {
    auto end = std::find_if(begin, chunks.end(), [&](const Chunk& c) { return c.org != begin->org; });
    try {
      settle(place, {begin, end});
    } catch (const Failure& failure) {
      fail(place, "organization " + begin->org, failure);
    }
    begin = end;
  }
}

std::vector<RefsRepair::Chunk> RefsRepair::chunks_of(const std::vector<Candidate>& candidates) {
  std::vector<Chunk> chunks;
  auto same = [](const Chunk& chunk, const Candidate& c) {
    return chunk.org == c.org && chunk.table == c.table && chunk.is_missing == c.is_missing;
  };
  // Entries without a row first, then rows without an entry: the former may be in the way of the latter.
  for (bool is_missing : {false, true})
    for (const Candidate& c : candidates) {
      if (c.is_missing != is_missing) continue;
      if (chunks.empty() || !same(chunks.back(), c) || chunks.back().keys.size() == kChunk)
        chunks.push_back({c.org, c.table, c.is_missing, {}});
      chunks.back().keys.push_back(c.key);
    }
  std::stable_sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) { return a.org < b.org; });
  return chunks;
}

void RefsRepair::settle(RefsPlace& place, const std::vector<Chunk>& chunks) {
  std::set<std::string> closed;  // tables with too many entries without a row
  for (const std::string& table : tables_) {
    std::size_t stale = 0;
    for (const Chunk& c : chunks) stale += c.table == table && !c.is_missing ? c.keys.size() : 0;
    if (!accepts_many_ && takes_most(cloud_, table, chunks.front().org, stale)) closed.insert(table);
  }
  for (std::size_t i = 0; i < chunks.size();) {
    Pause held(cloud_, chunks[i].org, false, timeout_);
    if (!place.still_has(chunks[i].org)) throw Failure{"it has moved meanwhile: run this again"};
    do {
      const Chunk& chunk = chunks[i++];
      if (!chunk.is_missing && closed.contains(chunk.table))
        leave(chunk, "most entries have no row, as if the database were another one or emptied: see -accept-many");
      else
        settle_chunk(place, chunk);
    } while (i < chunks.size() && held.seconds_held() < kLongestPauseSeconds);
  }
}

void RefsRepair::settle_chunk(RefsPlace& place, const Chunk& chunk) {
  for (int attempt = 1;; ++attempt) {
    try {
      return chunk.is_missing ? try_missing(place, chunk) : try_stale(place, chunk);
    } catch (const Failure& failure) {
      cloud_.run("ROLLBACK");
      try {
        place.reader().run("ROLLBACK");
      } catch (const Failure&) {
        throw failure;
      }
      if (!is_busy(failure)) throw;
      if (attempt == kAttempts) return leave(chunk, "held by a transaction that does not end");
      std::this_thread::sleep_for(kRest);
    }
  }
}

void RefsRepair::try_stale(RefsPlace& place, const Chunk& chunk) {
  cloud_.run("BEGIN; SET LOCAL lock_timeout = '1s'");
  Keys held;
  Rows locked = cloud_.query("SELECT lokadb.refs_hold($1::regclass, $2, $3::text[])",
                             {chunk.table, chunk.org, to_array(chunk.keys)});
  for (int i = 0; i < locked.size(); ++i) held.push_back(locked.get(i, 0));
  std::set<std::string> present;
  for (const RowOwner& row : place.rows(chunk.table, chunk.org, held, false)) present.insert(row.key);
  Keys gone = without(held, present);
  std::set<std::string> kept;
  Rows refused = cloud_.query("SELECT key, why FROM lokadb.refs_remove($1::regclass, $2, $3::text[])",
                              {chunk.table, chunk.org, to_array(gone)});
  finish();
  for (int i = 0; i < refused.size(); ++i) {
    kept.insert(refused.get(i, 0));
    left_.push_back({Finding::Kind::Stale, chunk.org, chunk.table, refused.get(i, 0), refused.get(i, 1)});
  }
  for (const std::string& key : without(gone, kept))
    repaired_.push_back({Finding::Kind::Stale, chunk.org, chunk.table, key, ""});
}

void RefsRepair::try_missing(RefsPlace& place, const Chunk& chunk) {
  place.reader().run("BEGIN; SET LOCAL statement_timeout = '3s'");
  Keys present;
  for (const RowOwner& row : place.rows(chunk.table, chunk.org, chunk.keys, true)) present.push_back(row.key);
  std::set<std::string> settled;
  std::vector<Finding> conflicts;
  auto conflict = [&](const std::string& key, const std::string& why) {
    if (settled.insert(key).second) conflicts.push_back({Finding::Kind::Conflict, chunk.org, chunk.table, key, why});
  };
  for (const RowOwner& row : owners_elsewhere(chunk, present))
    conflict(row.key, "organization " + row.org + " has a row with this key, too");
  Keys wanted = without(present, settled);
  cloud_.run("BEGIN; SET LOCAL lock_timeout = '1s'");
  Rows refused = cloud_.query("SELECT key, holder FROM lokadb.refs_add($1::regclass, $2, $3::text[])",
                              {chunk.table, chunk.org, to_array(wanted)});
  for (int i = 0; i < refused.size(); ++i) {
    if (refused.is_null(i, 1)) throw Failure{"an entry vanished", kRefused, "40001"};
    if (refused.get(i, 1) == chunk.org)
      settled.insert(refused.get(i, 0));  // its own transaction came first
    else
      conflict(refused.get(i, 0), "its refs entry says organization " + refused.get(i, 1));
  }
  finish();
  place.reader().run("COMMIT");
  left_.insert(left_.end(), conflicts.begin(), conflicts.end());
  for (const std::string& key : without(wanted, settled))
    repaired_.push_back({Finding::Kind::Missing, chunk.org, chunk.table, key, ""});
}

void RefsRepair::leave(const Chunk& chunk, const std::string& why) {
  for (const std::string& key : chunk.keys)
    left_.push_back(
        {chunk.is_missing ? Finding::Kind::Missing : Finding::Kind::Stale, chunk.org, chunk.table, key, why});
}

// So that a key which two organizations have is given to neither. One that does not answer is not asked.
std::vector<RowOwner> RefsRepair::owners_elsewhere(const Chunk& chunk, const Keys& keys) {
  std::vector<RowOwner> owners;
  for (auto& place : places_) {
    if (place->has_failed || place->org() == chunk.org) continue;
    try {
      for (RowOwner& row : place->rows_unlocked(chunk.table, keys))
        if (row.org != chunk.org) owners.push_back(std::move(row));
    } catch (const Failure& failure) {
      fail(*place, place->name(), failure);
    }
  }
  return owners;
}

void RefsRepair::fail(RefsPlace& place, const std::string& what, const Failure& failure) {
  cloud_.query("SELECT 1");  // without the cloud there is no going on
  // One organization at home that cannot be paused does not keep the others from being looked at.
  place.has_failed = !place.org().empty();
  auto same = [&](const Unsettled& u) { return u.what == what; };
  if (place.is_wanted && std::none_of(unsettled_.begin(), unsettled_.end(), same))
    unsettled_.push_back({what, failure.text});
}

void RefsRepair::move_sequences(const std::string& table) {
  Rows behind = cloud_.query("SELECT seq, last_value, largest FROM lokadb.sequences_behind($1::regclass)", {table});
  for (int i = 0; i < behind.size(); ++i) move_sequence(table, {behind.get(i, 0), behind.get(i, 1), behind.get(i, 2)});
}

void RefsRepair::move_sequence(const std::string& table, const SequenceMove& move) {
  if (dry_) return sequences_.push_back(move);
  for (int attempt = 1;; ++attempt) {
    try {
      std::string from;
      cloud_.run("BEGIN; SET LOCAL lock_timeout = '1s'");
      from = cloud_.value("SELECT lokadb.sequence_forward($1::regclass, $2)", {table, move.name});
      finish();
      if (!from.empty()) sequences_.push_back({move.name, from, move.to});
      return;
    } catch (const Failure& failure) {
      cloud_.run("ROLLBACK");
      if (!is_busy(failure) || attempt == kAttempts)
        return unsettled_.push_back({"sequence " + move.name, failure.text});
      std::this_thread::sleep_for(kRest);
    }
  }
}

}  // namespace lokadb::cli
