// Who takes the answers of a server instead of the client it is linked to: statements of our own, and statements of the
// client whose answers are held back (pool/routed_batch.h). Worker of the server.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "pool/rows_mark.h"

namespace lokadb {

class ServerConnection;

class AnswerSink {
 public:
  // What the server sent for the client, in order. `begins`: a message begins at the first byte, else the one before
  // goes on. Rows are whole up to kWholeRow bytes, other messages up to kWholeMessage. Borrowed until the turn of the
  // loop ends.
  virtual void on_answer(Bytes bytes, bool begins) = 0;
  // All that was asked has been answered. The server may be given back, or used again.
  virtual void on_ready(ServerConnection& server, char status) = 0;
  // It has been closed, and must not be used any more.
  virtual void on_server_lost(ServerConnection& server, const Error& error) = 0;
  // The server is not read while this is true.
  virtual bool is_blocked() const = 0;
  // Whether it is to be told what each statement that is used takes and gives (pool/result_forms.h).
  virtual bool wants_forms() const { return false; }
  // `statement`: the number of the prepared one; 0: the unnamed one, in the order of their Parse messages.
  virtual void on_described(std::uint64_t /*statement*/, RowsMark /*form*/, RowsMark /*rows*/) {}

  static constexpr std::size_t kWholeRow = 65536, kWholeMessage = 1 << 20;

 protected:
  ~AnswerSink() = default;
};

}  // namespace lokadb
