// What a server still owes: for every request sent to it, in order, the answer that will come and who gets it.
// A connection is free for somebody else only when this queue is empty: the one gate for reuse.
//
// Source of the answering rules: PostgreSQL manual, "Message Flow" (Simple Query, Extended Query, COPY, Pipelining).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/prepared.h"

namespace lokadb {

enum class Request : std::uint8_t {
  Query,         // ... ReadyForQuery
  FunctionCall,  // ... ReadyForQuery
  Parse,         // ParseComplete
  Bind,          // BindComplete
  Describe,      // RowDescription or NoData (ParameterDescription before it)
  Execute,       // CommandComplete, EmptyQueryResponse or PortalSuspended
  Close,         // CloseComplete
  Sync,          // ReadyForQuery
  CopyEnd,       // nothing: the place of CopyDone or CopyFail in the stream
  ParsedHere,    // not sent: the server has the statement; ParseComplete is given here, in its place
  ClosedHere,    // not sent: CloseComplete is given here, in its place
};

// Not sent to the server, or not answered by it.
constexpr bool is_silent(Request r) {
  return r == Request::CopyEnd || r == Request::ParsedHere || r == Request::ClosedHere;
}
constexpr bool ends_with_ready(Request r) {
  return r == Request::Query || r == Request::FunctionCall || r == Request::Sync;
}

// Why a connection ends whose COPY failed amid a pipeline such that it is not known what ran after it.
inline Error undecided_copy() {
  return {sqlstate::kResolutionUnknown,
          Severity::Fatal,
          "COPY failed with a Sync among its data; what ran of the rest is not known",
          {}};
}

// How to take back what was noted when a Parse or Close was sent, if the server skips it after an error.
struct StatementUndo {
  std::string client_name;  // empty: the client's names are not concerned
  StatementPtr statement;
  bool client_added = false;    // the name was given to the statement
  bool client_removed = false;  // the name was taken away
  bool server_added = false;    // noted as known to the server
  bool server_removed = false;  // noted as forgotten by the server
};

struct Expected {
  Request request;
  bool for_client = true;        // else: our own, nobody sees the answer
  bool name_is_taken = false;    // a Parse that must fail with 42P05; its text names the client's statement
  bool forgets_names = false;    // may be a DEALLOCATE or DISCARD
  bool sets_unnamed = false;     // makes or closes the unnamed statement
  bool takes_unnamed = false;    // and it was another client's before
  bool is_refusal = false;       // must fail; the client gets the error of its session's routing instead
  bool is_step = false;          // of a plugin's step in front of a statement of the client
  bool is_first_step = false;    // and nothing of the batch stands before it
  bool is_last_step = false;     // all of them have passed when this is answered
  bool hides_first_tag = false;  // a Query of two statements in place of the client's one
  bool stands_in = false;  // a Sync behind a Query or FunctionCall: the client gets its answer only if that was skipped
  bool rows_have_changed = false;    // must fail; the client has to know that the rows of `statement` are others now
  bool asks_for_rows = false;        // our own Describe, whose answer the next message of the client waits for
  bool tells_form = false;           // our own Describe, whose answer the sink is told
  std::uint16_t replaced = 0;        // sent in other words than the client's: which of Routing's texts, from 1
  std::int16_t longer = 0;           // characters that a name in its text has more than the client's for it
  std::uint64_t unnamed_before = 0;  // whose it was
  std::uint64_t statement = 0;       // the number of the prepared one that it uses; 0: none
  std::unique_ptr<StatementUndo> undo;

  // Which statements exist depends on whether this succeeds.
  bool changes_statements() const { return undo != nullptr || forgets_names || takes_unnamed; }
};

// A ring; allocates only when it grows.
class ReplyQueue {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  Expected& front() { return ring_[head_]; }
  Expected& at(std::size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  void push(Request request, bool for_client, std::unique_ptr<StatementUndo> undo = nullptr) {
    if (count_ == ring_.size()) grow();
    Expected& e = ring_[(head_ + count_) & (ring_.size() - 1)];
    e.request = request;
    e.for_client = for_client;
    e.name_is_taken = e.forgets_names = e.sets_unnamed = e.takes_unnamed = e.is_refusal = false;
    e.is_step = e.is_first_step = e.is_last_step = e.stands_in = false;
    e.hides_first_tag = false;
    e.rows_have_changed = e.asks_for_rows = e.tells_form = false;
    e.replaced = 0;
    e.longer = 0;
    e.statement = 0;
    e.undo = std::move(undo);
    ++count_;
  }
  // For the client, with nothing to undo.
  void push_plain(Request request) {
    if (count_ == ring_.size()) grow();
    Expected& e = ring_[(head_ + count_) & (ring_.size() - 1)];
    e.request = request;
    e.for_client = true;
    e.name_is_taken = e.forgets_names = e.sets_unnamed = e.takes_unnamed = e.is_refusal = false;
    e.is_step = e.is_first_step = e.is_last_step = e.stands_in = false;
    e.hides_first_tag = false;
    e.rows_have_changed = e.asks_for_rows = e.tells_form = false;
    e.replaced = 0;
    e.longer = 0;
    e.statement = 0;
    ++count_;
  }
  Expected& back() { return at(count_ - 1); }
  const Expected& back() const { return ring_[(head_ + count_ - 1) & (ring_.size() - 1)]; }
  void pop() {
    if (ring_[head_].undo) ring_[head_].undo.reset();
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
  }
  void remove(std::size_t i);
  void clear();

 private:
  void grow();
  std::vector<Expected> ring_;  // size 0 or a power of two
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace lokadb
