// The messages of one batch, read as statements for plugins (plugin/batch.h). Source: PostgreSQL manual, "Message
// Formats".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "plugin/batch.h"

namespace lokadb {

class ClientStatements;

// Where a batch ends that begins at the front of `in`. A Query or FunctionCall is a batch of its own: if what stands in
// front of it fails, the server ignores it and waits for the Sync.
struct BatchEnd {
  std::size_t size = 0;         // bytes, 0: not all here
  char last = 0;                // type of its last message: 'Q', 'S', 'H' or 'F'
  bool lacks_its_last = false;  // nobody has sent that 'H': the next message is a Query or FunctionCall
};
BatchEnd find_batch_end(Bytes in);
// Of a batch that does not end in time: where its last Execute that is whole ends, as if an 'H' stood behind it.
BatchEnd find_last_execute(Bytes in);
// Messages that begin a batch, or belong to one; the others (COPY data, Terminate, Sync and Flush alone) decide
// nothing.
bool begins_batch(char type);

// The unnamed statement of a session: as its last Parse without a name had it.
struct UnnamedStatement {
  std::vector<std::byte> body;  // query and types, as in the message
  bool is_known = false;
};

// Whose ends the answers to a batch tell, in their order: the numbers of its statements, one for each Execute; behind
// these the statements of the Query that it ends with, from this number on. What is beyond belongs to none.
struct BatchEnds {
  std::vector<std::uint32_t> executed;
  std::optional<std::uint32_t> query;
};

struct ReadBatch {
  std::vector<BatchStatement> statements;
  // Names that its Parse and Close messages give or take away, and whether it uses an unnamed statement made earlier.
  std::vector<std::string> changed_names;
  std::optional<Bytes> unnamed_parse;  // body of its last Parse without a name
  bool closes_unnamed = false;         // behind that, if there is one
  bool binds_earlier_unnamed = false;
  std::uint32_t bind_count = 0;
  BatchEnds ends;
  char last = 0;
};

// nullopt: malformed, so that the server is to say so; or portals are executed in another order than they are bound in,
// so that the order of its statements says nothing. Views into `messages`, `statements` and `unnamed`.
std::optional<ReadBatch> read_batch(Bytes messages, const ClientStatements& statements,
                                    const UnnamedStatement& unnamed);

}  // namespace lokadb
