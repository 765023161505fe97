// Refs entries and rows that do not belong together: finds them and repairs them, beside live traffic.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/connection.h"
#include "cli/flags.h"
#include "cli/refs_place.h"

namespace lokadb::cli {

struct Finding {
  enum class Kind { Missing, Stale, Conflict };
  Kind kind;
  std::string org;
  std::string table;
  std::string key;
  std::string why;  // it was left as it is; empty: repaired, or would be
};

// What could not be looked at, paused or moved: "organization 4", "sequence public.s".
struct Unsettled {
  std::string what;
  std::string reason;
};

struct SequenceMove {
  std::string name;
  std::string from;
  std::string to;
};

// One run over some tables and organizations.
//
// A look without locks gives candidates; what is still one a second later is settled under the pause of its
// organization, so that nothing is in flight that came through a proxy. Writers that take no pause are met key by key:
//   an entry without a row    is locked first (whoever puts it again holds it), then looked for again, then deleted;
//   a row without an entry    is locked against deletion first, then the entry is added and committed.
// A dry run does all of that and takes it back.
class RefsRepair {
 public:
  RefsRepair(const Flags& flags, bool dry);
  void run();

  const std::vector<Finding>& repaired() const { return repaired_; }
  const std::vector<Finding>& left() const { return left_; }
  const std::vector<Unsettled>& unsettled() const { return unsettled_; }
  const std::vector<SequenceMove>& sequences() const { return sequences_; }

 private:
  // Of one organization, table and kind; the unit that is settled at a time.
  struct Chunk {
    std::string org;
    std::string table;
    bool is_missing;
    Keys keys;
  };

  void find_tables(const std::string& wanted);
  bool run_once();
  void look(RefsPlace& place);
  void settle_place(RefsPlace& place, const std::vector<Chunk>& chunks);
  std::vector<Chunk> chunks_of(const std::vector<Candidate>& candidates);
  void settle(RefsPlace& place, const std::vector<Chunk>& chunks);
  void settle_chunk(RefsPlace& place, const Chunk& chunk);
  void try_stale(RefsPlace& place, const Chunk& chunk);
  void try_missing(RefsPlace& place, const Chunk& chunk);
  void leave(const Chunk& chunk, const std::string& why);
  std::vector<RowOwner> owners_elsewhere(const Chunk& chunk, const Keys& keys);
  void fail(RefsPlace& place, const std::string& what, const Failure& failure);
  void finish() { cloud_.run(dry_ ? "ROLLBACK" : "COMMIT"); }
  void move_sequences(const std::string& table);
  void move_sequence(const std::string& table, const SequenceMove& move);

  bool dry_;
  bool accepts_many_;
  double timeout_;
  Connection cloud_;   // pauses, and changes refs
  Connection second_;  // reads and locks rows, so that they stay locked until the refs are committed
  std::vector<std::string> tables_;
  std::vector<std::unique_ptr<RefsPlace>> places_;
  std::vector<Finding> repaired_, left_;
  std::vector<Unsettled> unsettled_;
  std::vector<SequenceMove> sequences_;
};

}  // namespace lokadb::cli
