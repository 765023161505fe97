// A loaded plugin: its calls, each guarded, measured and counted. The calls of a batch come from the workers, several
// at once; init, reload and the end from the main thread while the workers stand still.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log_rate.h"
#include "plugin/batch.h"
#include "plugin/call.h"
#include "plugin/library.h"

namespace lokadb {

// What one call of inspect, decide or review said, as far as it was sound.
struct PluginOpinion {
  std::uint32_t kind = LOKADB_NO_OPINION;
  std::uint32_t reason = 0;
  std::uint32_t target = 0;
  std::uint32_t commits = LOKADB_COMMITS_NOTHING;
  std::string organization;
  std::string sqlstate, message, detail, hint;  // LOKADB_REFUSE
};

// A row of SHOW PLUGINS.
struct PluginFigures {
  std::string name, version, library;
  std::uint32_t abi_major = 0, abi_minor = 0;
  bool is_required = true;
  std::uint64_t calls = 0, refused = 0, failed = 0, slow = 0, total_us = 0, max_us = 0;
  struct Reason {
    std::string_view id, text;  // static in the plugin
    std::uint64_t count;
  };
  std::vector<Reason> reasons;
};

class Plugin {
 public:
  Plugin(PluginLibrary library, std::string name, std::string path, bool is_required);
  ~Plugin();  // destroy, if init was called and went well
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& name() const { return name_; }
  bool is_required() const { return is_required_; }
  void set_required(bool on) { is_required_ = on; }
  const lokadb_plugin& table() const { return library_.table(); }

  std::optional<PluginFailure> init(const PluginSections& sections);
  std::optional<PluginFailure> reload(const PluginSections& sections);
  // After a reload that could not be taken back: every call fails from now on.
  void disable() { is_broken_ = true; }

  // The slot of a session, which is what the others pass back. It may stand for one that could not be made: all calls
  // for that session fail then.
  void* session_begin(std::string_view database, std::string_view role);
  void session_end(void* slot);

  // The moments. `slot` is that of the batch's session. A failure has been logged and counted.
  using Opinion = std::optional<PluginOpinion>;  // nullopt: `failure` says why
  Opinion inspect(Batch& batch, void* slot, PluginFailure& failure);
  Opinion decide(Batch& batch, void* slot, PluginFailure& failure);
  Opinion review(Batch& batch, void* slot, const lokadb_verdict& settled, PluginFailure& failure);
  void observe(Batch* batch, void* slot, const lokadb_event& event);

  // A parameter of the start-up packet; true: the plugin takes it. A failure is a refusal of the login.
  bool startup(std::string_view name, std::string_view value, std::optional<PluginFailure>& failure);
  // For an online restart. False after a failure.
  bool session_save(void* slot, std::string& state);
  bool session_restore(void* slot, std::string_view state);

  // False: it wants none. Strings of `feed` are the plugin's, until its next call.
  bool feed(std::string_view database, lokadb_feed& feed);
  void feed_changed(std::string_view database, std::string_view value, bool is_fresh);

  // Rows of the table's show number `which`. World stopped.
  std::optional<PluginFailure> show(std::uint32_t which, PluginRows& rows);
  // False: the plugin says nothing, or it failed. Strings of `state` are the plugin's, until its next call. World
  // stopped.
  bool session_state(void* slot, lokadb_session_state& state);

  // Notes a fault that only the chain can see, as if the call had failed.
  PluginFailure failed(const char* what, PluginFailure failure);
  void count_reason(std::uint32_t reason);
  void count_refusal() { refused_.fetch_add(1, std::memory_order_relaxed); }
  PluginFigures figures() const;

 private:
  template <class F>
  std::optional<PluginFailure> run(PluginEntry entry, PluginCall::Subject subject, F&& function);
  template <class F>
  Opinion ask(PluginEntry entry, Batch& batch, void* slot, PluginFailure& failure, F&& function);
  void measure(PluginEntry entry, std::int64_t nanoseconds);
  void log_failure(const char* what, const PluginFailure& failure);

  const PluginLibrary library_;
  const std::string name_, path_;
  bool is_required_;        // changes while the world is stopped
  bool is_broken_ = false;  // the same
  bool is_initialized_ = false;
  void* self_ = nullptr;

  TargetTable targets_;  // that it has given numbers

  alignas(64) std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> refused_{0}, failed_{0}, slow_{0}, total_ns_{0}, max_ns_{0};
  std::unique_ptr<std::atomic<std::uint64_t>[]> reasons_;  // one for each of the table
  std::atomic<std::int64_t> next_slow_warning_{0};         // microseconds; 0: at once
  LogRate failure_lines_{1'000'000};
};

}  // namespace lokadb
