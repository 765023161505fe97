// What becomes of a session's statements, for plugins that observe. The answers are noted as they pass, and the plugins
// told when all of a batch have come (before the session's next batch is looked at), so that an answer that is thrown
// away in the end is told to nobody. Exists only where a plugin observes. Worker of the session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/chain.h"
#include "pool/batch_reader.h"

namespace lokadb {

class BatchWatch {
 public:
  BatchWatch(PluginChain& chain, std::vector<void*>& slots) : chain_(chain), slots_(slots) {}

  // These answers will come next. Tells what is still to be told of an earlier batch that ended in Flush.
  void begin(const BatchEnds& ends);
  // tag: of CommandComplete; empty for EmptyQueryResponse and PortalSuspended.
  void completed(std::string_view tag) { note({next(), std::string(tag), {}}); }
  void failed(std::string_view sqlstate);
  // The same by an answer in one piece; other messages are nothing to it.
  void answered(Bytes message);
  // What has come is thrown away. has_failed: the client was told an error instead.
  void forget(bool has_failed);
  void tell();
  // ReadyForQuery: tells, and that the transaction has ended if it has.
  void ready(char status);

 private:
  struct Ended {
    std::uint32_t statement;
    std::string tag, sqlstate;
  };
  void note(Ended ended);
  std::uint32_t next();

  PluginChain& chain_;
  std::vector<void*>& slots_;
  BatchEnds ends_;
  std::size_t count_ = 0;  // of statements of this batch that have ended
  std::vector<Ended> noted_;
  std::uint32_t outcome_ = LOKADB_COMMITTED;  // of the transaction, as far as it has come
};

}  // namespace lokadb
