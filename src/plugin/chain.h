// The plugins that are loaded, in the order of the option `plugins`, and their four moments. Calls come from the
// workers, several at once; loading, reload and the end come while the workers stand still.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "plugin/batch.h"

namespace lokadb {

class Plugin;          // one of them (plugin/plugin.h)
struct PluginFailure;  // plugin/call.h
struct PluginFigures;  // plugin/plugin.h
struct RoundOpinion;   // plugin/verdict.h

// Steps can be asked for so many times for one batch, and decide be called again without any (for facts alone) as
// often.
inline constexpr std::uint32_t kMostRounds = 4;

class PluginChain {
 public:
  // Loads and initializes all, or nothing; the error names plugin, file and reason. `names` are those of the option
  // `plugins`; a plugin's file is `library` in its section, else DIR/NAME.so with DIR from plugin_folder().
  static Result<std::unique_ptr<PluginChain>> load(const TextList& names, const PluginSections& sections);
  // Everything as it was, if one refuses (which is logged and is the error). World stopped.
  Result<Done> reload(const PluginSections& sections);
  // Takes back the last reload, which went well, because another part of the configuration was refused. World stopped.
  void undo_reload();
  // Sessions must have ended.
  ~PluginChain();

  std::size_t size() const { return plugins_.size(); }

  // inspect of all, then the first rounds of decide. LOKADB_ASK: there are steps to run.
  BatchVerdict begin(Batch& batch);
  // After LOKADB_ASK, when its steps have been run: the next round.
  BatchVerdict go_on(Batch& batch);
  // The last word. Kind LOKADB_NO_OPINION: go on; else a refusal.
  BatchVerdict review(Batch& batch, const BatchVerdict& settled);
  // `batch` is null for events outside a batch. The size in `event` is filled in here.
  void observe(Batch* batch, std::vector<void*>& slots, const lokadb_event& event);

  // One slot for each plugin, for BatchContext::slots. What a plugin cannot begin fails later, batch by batch.
  std::vector<void*> begin_session(std::string_view database, std::string_view role);
  void end_session(std::vector<void*>& slots);

  // The words for a verdict's reason; null: it has none.
  const lokadb_reason* reason(const BatchVerdict& verdict) const;
  const std::string& name(std::uint32_t plugin) const;

  // Whether anybody wants to know what becomes of statements.
  bool observes() const;
  // A parameter of a start-up packet. True: a plugin takes it; an error refuses the login.
  Result<bool> startup(std::string_view name, std::string_view value) const;
  // A session that goes to another process (online restart): by name of the plugin, what its own there must know.
  using SavedSession = std::vector<std::pair<std::string, std::string>>;
  std::optional<SavedSession> save_session(const std::vector<void*>& slots) const;
  bool restore_session(std::vector<void*>& slots, const SavedSession& saved) const;

  // Connections that plugins want to a database (lokadb_feed). Control thread.
  struct FeedWish {
    std::uint32_t plugin;
    std::string user, password, channel, query;
    std::uint32_t heartbeat_ms;
  };
  std::vector<FeedWish> feeds(std::string_view database);
  void feed_changed(std::uint32_t plugin, std::string_view database, std::string_view value, bool is_fresh);

  // SHOW commands of plugins, in order. World stopped.
  struct Show {
    std::string_view name, columns;  // static in the plugin
    std::uint32_t plugin, number;
  };
  std::vector<Show> shows() const;
  using Rows = std::vector<std::vector<std::optional<std::string>>>;
  Result<Rows> rows_of(const Show& show);
  // Of a session, those that say something. World stopped.
  struct SessionState {
    std::string_view plugin;
    bool is_off;
    const lokadb_reason* reason;  // where it is off
    std::string details;
  };
  std::vector<SessionState> session_states(const std::vector<void*>& slots);

  // In order, for the console. Any thread.
  std::vector<PluginFigures> figures() const;

 private:
  PluginChain() = default;
  Result<Done> open(const TextList& names, const PluginSections& sections);
  void* slot_of(const Batch& batch, std::uint32_t plugin) const;
  BatchVerdict refusal_for(std::uint32_t plugin, PluginFailure failure) const;
  std::optional<BatchVerdict> decide_round(Batch& batch, std::vector<RoundOpinion>& opinions);
  static std::string fault_of_steps(const Batch& batch, std::uint32_t kind, std::size_t first_fact,
                                    std::size_t first_step);
  BatchVerdict settle(Batch& batch, std::size_t first_step, const std::vector<RoundOpinion>& opinions);
  void restore(std::size_t reloaded);

  std::vector<std::unique_ptr<Plugin>> plugins_;
  PluginSections sections_;  // that hold
  PluginSections sections_before_;
  std::vector<bool> required_before_;
  std::mutex news_;  // held while a feed's thread tells a plugin something, and while that must not be
};

// Where plugins are installed; from the build.
std::string_view plugin_folder();

}  // namespace lokadb
