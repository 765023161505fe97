// A session's batches and the plugins: each batch is gathered, shown to the chain, and then goes on as if there were no
// plugins (to the cloud), is refused, or is run by a RoutedBatch. Exists only where plugins are loaded. Worker of the
// session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/chain.h"
#include "pool/batch_reader.h"
#include "pool/batch_watch.h"
#include "pool/client_session.h"
#include "pool/gates.h"
#include "pool/replaced_text.h"

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
  void server_is_ready();  // nothing is owed any more

  // From the server: about a batch that runs in the client's own database.
  void tell_refusal();
  void steps_passed();
  void step_failed(Bytes error, bool is_first);
  // The batch has met another routing and will begin anew: nothing of its end is for the client.
  bool is_stale() const;
  // An ErrorResponse as the client is to see it; empty: as it came. replaced: see Expected.
  std::vector<std::byte> in_own_words(Bytes error, std::size_t replaced) const;
  // The CommandComplete of the first of two statements, which are one for the client.
  void keep_tag(Bytes message) { kept_tag_.assign(message.begin(), message.end()); }
  bool has_kept_tag() const { return !kept_tag_.empty(); }
  std::vector<std::byte> take_tag() { return std::exchange(kept_tag_, {}); }
  // If the server is lost now: whether a commit may have been under way.
  bool may_be_committing() const { return commits_ != LOKADB_COMMITS_NOTHING; }
  // COMMIT itself has been sent: what it does must not be cancelled.
  bool has_sent_commit() const { return commits_ == LOKADB_COMMITS_TRANSACTION; }

  // That the gate of a direct batch is asked on, if it is not the session's own; else null.
  ServerConnection* gate_server() const;

  // To another process: nothing of a batch has been handled that is not over.
  bool may_move();
  // What plugins have of it; after may_move().
  const PluginChain::SavedSession& saved() const { return saved_; }
  bool restore(const PluginChain::SavedSession& saved) { return chain_.restore_session(slots_, saved); }
  const UnnamedStatement& unnamed() const { return unnamed_; }
  void restore_unnamed(UnnamedStatement unnamed) { unnamed_ = std::move(unnamed); }

  // From RoutedBatch: a server has been there meanwhile, whose settings were not known before.
  void know_settings(BatchContext& context);
  // It can be acted on, or is over.
  void run_has_news();
  // An error has been sent: ReadyForQuery now, or after the Sync that is still to come.
  void end_batch_after_error(char last);
  // The unnamed statement of an earlier batch, which the server does not have.
  void send_unnamed(ServerConnection& server, std::string_view other_words = {});

  // What the batch has in other words; until the next.
  std::vector<ReplacedText>& replaced() { return replaced_; }

  PluginChain& chain() { return chain_; }
  BatchWatch* watch() { return watch_ ? &*watch_ : nullptr; }
  std::vector<void*>& slots() { return slots_; }

 private:
  void make_run(Bytes batch, char last, bool is_whole);
  std::optional<Outcome> act(MessageHead head, std::size_t& used);
  std::optional<Outcome> act_on(MessageHead head, Bytes in, std::size_t& used);
  void refuse_with_last(char last);
  std::optional<Outcome> look_at_large(MessageHead head, Bytes in, std::size_t& used);
  std::optional<Outcome> skip_to_sync(MessageHead head, Bytes in, std::size_t& used);
  void refuse_on_server(char last);
  BatchContext make_context(char last, bool is_whole);
  // Views of what the session, or welcome_, has.
  std::string_view own_setting(std::string_view name) const;
  std::string_view setting(std::string_view name) const;
  void remember_unnamed(const ReadBatch& batch);
  void send_flush();
  void pass_large(MessageHead head, bool has_steps);

  ClientSession& session_;
  PluginChain& chain_;
  std::vector<void*> slots_;
  std::shared_ptr<const Welcome> welcome_;  // of the pool, when the batch began
  std::optional<BatchWatch> watch_;         // if a plugin observes
  std::unique_ptr<RoutedBatch> run_;
  // Positions in the client's stream.
  std::uint64_t decided_until_ = 0;
  std::uint64_t decided_from_ = 0;
  // One that is too large to be gathered; it passes to the end of its first Execute.
  enum class Large : std::uint8_t { None, Passes, IsRefused } large_ = Large::None;
  bool large_is_executed_ = false;
  bool is_open_ = false;        // the last batch ended in Flush: its transaction goes on
  bool skips_to_sync_ = false;  // refused in the middle of an extended batch
  bool lacks_flush_ = false;    // of the batch that was read last: BatchEnd::lacks_its_last
  bool has_ended_ = false;
  std::uint32_t commits_ = LOKADB_COMMITS_NOTHING;  // what the server works for
  UnnamedStatement unnamed_;
  std::vector<std::byte> refusal_;  // ErrorResponse
  std::vector<std::byte> kept_tag_;
  std::vector<ReplacedText> replaced_;
  PluginChain::SavedSession saved_;
};

}  // namespace lokadb
