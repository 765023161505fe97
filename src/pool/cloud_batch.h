// A batch that goes to the client's own database with something of the plugins' in it: steps in front of statements,
// and statements in other words. All of it leaves in one packet and runs in the client's own transaction. Worker of the
// session.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/batch.h"
#include "pool/client_session.h"
#include "pool/replaced_text.h"

namespace lokadb {

class CloudBatch {
 public:
  // All outlive it. Nothing else may be owed by the session's server. has_place: at a gate, which others want, so that
  // the steps have to be answered before the statements behind them.
  CloudBatch(ClientSession& session, const Batch& batch, Bytes messages, bool has_place);
  static bool has_work(const Batch& batch);
  // Nothing needs the unnamed statement of an earlier batch as it was.
  bool replaces_unnamed() const;
  // The text of that statement as it is to be described; empty: its own.
  std::string_view unnamed_in_other_words() const;
  bool has_steps() const { return !steps_.empty(); }
  enum class Sent : std::uint8_t { All, Waits, Failed };
  // On the session's server. Waits: to be called again when its statements are settled. Failed: not all of it can be.
  Sent send();
  // Of a batch that is too large to be gathered: the steps alone, so that the server answers them at once. What they
  // began goes on with the client's messages.
  void send_steps_alone();

 private:
  std::size_t place_of(const BatchStep& step) const;
  void send_steps(std::size_t message, ServerConnection& server);
  Sent send_message(MessageHead head, Bytes message);
  Sent as_it_came(MessageHead head, Bytes message);
  Sent send_query(MessageHead head, Bytes message);
  Sent send_bind(const BatchReplacement& replacement, const BatchStatement& statement, Bytes message);
  Sent send_parse(const BatchReplacement& replacement, Bytes message);
  Sent send_describe(const BatchReplacement& replacement, std::string_view name);
  const BatchReplacement* replacement_at(std::size_t message) const;
  // Of the statement's Parse and Describe.
  const BatchReplacement* replacement_of(std::string_view name) const;
  ReplacedText replaced_query() const;
  // Its number, for Expected::replaced.
  std::uint16_t keep(ReplacedText text);
  // Parse messages among what is expected of the server since there were `before` answers to come are of this text.
  void note_parsed(const BatchReplacement& replacement, std::size_t before);
  bool is_utf8() const { return batch_.context().client_encoding == "UTF8"; }

  ClientSession& session_;
  const Batch& batch_;
  Bytes messages_;
  bool has_place_;
  std::size_t at_ = 0;                                      // of the message that is being sent
  std::map<std::string, std::size_t, std::less<>> parses_;  // names, and where the last Parse of each began
  bool has_begun_ = false;                                  // its steps have been sent
  bool has_steps_here_ = false;
  struct PlacedStep {
    const BatchStep* step;
    std::size_t place;  // of the message that it stands in front of
  };
  std::vector<PlacedStep> steps_;  // in the order of their places
};

}  // namespace lokadb
