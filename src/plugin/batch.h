// One batch of a client while plugins decide about it: its statements, the facts they publish, the steps they ask for
// and what came of them. Knows no session and no server: whoever runs the steps fills in their answers. One thread at
// a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "plugin/batch_target.h"
#include "plugin/lokadb_plugin.h"

namespace lokadb {

class PluginChain;

struct BatchStatement {
  std::uint32_t form = LOKADB_SIMPLE;
  std::string_view text;  // borrowed from the messages of the batch or from a prepared statement
  std::uint64_t known_as = 0;
  struct Parameter {
    std::uint32_t declared_type = 0;
    bool is_null = false;
    bool is_binary = false;
    std::string_view value;
  };
  std::vector<Parameter> parameters;
  std::size_t message = 0;  // where its Query or Bind begins among the messages of the batch
  std::string_view name;    // of the prepared statement
  static constexpr std::size_t kEarlier = SIZE_MAX;
  std::size_t parse = kEarlier;  // where its Parse begins, if that is in the batch: several may have one name
  std::uint32_t row_limit = 0;
  bool is_described = false;
  bool is_executed = false;
  bool has_named_portal = false;
  bool is_kept = false;    // executed behind other statements, or not in this batch
  bool is_unread = false;  // LOKADB_OTHER: the whole batch
};

struct BatchStep {
  std::uint32_t plugin = 0;  // whose it is, in the order of the chain
  std::uint32_t leg = LOKADB_LEG_CLOUD;
  std::uint32_t moment = LOKADB_BEFORE;
  std::string sql;
  struct Value {
    bool is_null = false;
    bool is_binary = false;
    std::uint32_t type = 0;
    std::string value;
  };
  std::vector<Value> values;
  std::uint32_t statement = 0;
  // Filled in by whoever ran it. One that will never be run (its plugin's verdict did not prevail) is done from the
  // start, and dropped.
  bool is_done = false;
  bool is_dropped = false;
  std::vector<std::vector<std::pair<bool, std::string>>> rows;  // is_null, text
};

struct BatchReplacement {  // a copy of lokadb_replacement
  std::uint32_t plugin = 0;
  std::uint32_t statement = 0;
  std::string text;
  std::vector<BatchStep::Value> values;
  std::vector<lokadb_edit> edits;
  bool with_parse = false;
  bool has_two = false;
};

// What the session tells about itself and the batch; outlives the Batch.
struct BatchContext {
  std::string_view database, role, client_encoding;
  char transaction_status = 'I';
  bool ends_in_flush = false;
  bool is_whole = true;
  bool has_standard_strings = true;
  bool is_session_pooled = false;
  std::uint32_t attempt = 0;
  std::string target_fault;
  std::uint64_t servers = 0;
  std::function<std::string_view(std::string_view name)> setting;      // data() null: not known
  std::function<std::string_view(std::string_view name)> own_setting;  // data() null: the client has asked for nothing
  std::vector<void*>* slots = nullptr;                                 // one for each plugin of the chain
};

inline constexpr std::uint32_t kNoReason = UINT32_MAX;

// Where the batch goes.
struct BatchVerdict {
  std::uint32_t kind = LOKADB_NO_OPINION;
  std::uint32_t plugin = 0;          // who said it
  std::uint32_t reason = kNoReason;  // in the table of that plugin (PluginChain::reason); none: the chain's own refusal
  std::string organization;
  std::uint32_t target = 0;
  std::uint32_t commits = LOKADB_COMMITS_NOTHING;
  std::string sqlstate, message, detail, hint;  // LOKADB_REFUSE
};

class Batch {
 public:
  Batch(BatchContext context, std::vector<BatchStatement> statements);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  const std::vector<BatchStatement>& statements() const { return statements_; }
  const std::vector<BatchTargetPtr>& targets() const { return targets_; }
  // All steps so far. After LOKADB_ASK all without is_done are to be run at once; after another verdict those without
  // is_done and with moment BEFORE in front of the client's statements, the others at the check.
  std::vector<BatchStep>& steps() { return steps_; }
  const std::vector<BatchStep>& steps() const { return steps_; }
  // Of the verdict LOKADB_CLOUD.
  const std::vector<BatchReplacement>& replacements() const { return replacements_; }
  BatchContext& context() { return context_; }
  const BatchContext& context() const { return context_; }

  // A stale gate (LK001): facts, steps and verdicts are forgotten, the batch is as it was.
  void start_anew();

 private:
  friend class PluginChain;
  friend struct HostCalls;  // the functions of lokadb_host
  BatchContext context_;
  std::vector<BatchStatement> statements_;
  std::vector<BatchTargetPtr> targets_;
  std::vector<BatchStep> steps_;
  std::vector<BatchReplacement> replacements_;
  struct Fact {
    std::uint32_t kind, statement, about, type, reason;
    bool is_binary;
    std::string name, value;
  };
  struct Split {
    std::uint32_t first;  // number of the first piece
    std::vector<std::size_t> begins;
  };

  void forget_facts_from(std::size_t count);
  // Its replacements, too.
  void drop_steps_from(std::size_t first, std::uint32_t of_plugin);

  std::deque<Fact> facts_;  // which stay where they are: plugins have been lent their texts
  std::vector<Split> splits_;
  std::vector<BatchStatement> unsplit_;  // the statements as they came, once a split has changed them
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::size_t memory_bytes_ = 0;
  std::uint32_t calling_plugin_ = 0;
  std::uint32_t rounds_ = 0;       // in which steps were asked for
  std::uint32_t free_rounds_ = 0;  // in which facts were all that was new
};

}  // namespace lokadb
