// A session's batches and the plugins: each batch is gathered, shown to the chain, and then goes on as if there were no
// plugins (to the cloud), is refused, or is run by a RoutedBatch. Exists only where plugins are loaded. Worker of the
// session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/chain.h"
#include "pool/batch_reader.h"
#include "pool/client_session.h"
#include "pool/gates.h"

namespace lokadb {

class RoutedBatch;

class Routing {
 public:
  Routing(ClientSession& session, PluginChain& chain);
  ~Routing();

  // The message at the front of the stream, before it is handled. nullopt: it goes on as without plugins.
  std::optional<Outcome> look_at(MessageHead head, Bytes in, std::size_t& used);
  // A batch is being decided or run: nothing more is read.
  bool is_busy() const;
  // By the loop; true: the session has nothing else to do now.
  bool resumed();

  // From the session.
  void server_given(ServerConnection& server);
  void parameters_set(ServerConnection& server);
  bool server_refused(const Error& error);  // false: the session is to be closed with it
  void feeds_are_fresh();
  void gate_has_news(Gates::Place place);  // none: it has waited in vain
  void session_ended();
  void tell_refusal();
  // To another process: nothing of a batch has been handled that is not over.
  bool may_move() const;
  const UnnamedStatement& unnamed() const { return unnamed_; }
  void restore_unnamed(UnnamedStatement unnamed) { unnamed_ = std::move(unnamed); }

  // From RoutedBatch: it can be acted on, or is over.
  void run_has_news();
  // An error has been sent: ReadyForQuery now, or after the Sync that is still to come.
  void end_batch_after_error(char last);
  // The unnamed statement of an earlier batch, which the server does not have.
  void send_unnamed(ServerConnection& server);

  PluginChain& chain() { return chain_; }
  std::vector<void*>& slots() { return slots_; }

 private:
  void make_run(Bytes batch, char last, bool is_whole);
  std::optional<Outcome> act(std::size_t& used);
  void refuse_with_last(char last);
  std::optional<Outcome> look_at_large(MessageHead head, Bytes in, std::size_t& used);
  std::optional<Outcome> skip_to_sync(MessageHead head, Bytes in, std::size_t& used);
  void refuse_on_server(char last);
  BatchContext make_context(char last, bool is_whole);
  void remember_unnamed(const ReadBatch& batch);

  ClientSession& session_;
  PluginChain& chain_;
  std::vector<void*> slots_;
  std::unique_ptr<RoutedBatch> run_;
  // Positions in the client's stream.
  std::uint64_t decided_until_ = 0;
  std::uint64_t decided_from_ = 0;
  enum class Large : std::uint8_t { None, Passes, IsRefused } large_ = Large::None;  // a batch too large to be gathered
  bool is_open_ = false;        // the last batch ended in Flush: its transaction goes on
  bool skips_to_sync_ = false;  // refused in the middle of an extended batch
  bool has_ended_ = false;
  UnnamedStatement unnamed_;
  std::vector<std::byte> refusal_;  // ErrorResponse
};

}  // namespace lokadb
