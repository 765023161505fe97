// One call of a plugin that is under way: what the host's functions need to know about it, and whether it went wrong.
// Kept for the thread, since plugins call the host without saying who they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/batch.h"
#include "plugin/section.h"

namespace lokadb {

// The functions of lokadb_plugin, as bits, so that a function of the host can name those it may be called in.
enum class PluginEntry : std::uint32_t {
  Entry = 1u << 0,
  Init = 1u << 1,
  Reload = 1u << 2,
  Destroy = 1u << 3,
  SessionBegin = 1u << 4,
  SessionEnd = 1u << 5,
  Inspect = 1u << 6,
  Decide = 1u << 7,
  Review = 1u << 8,
  Observe = 1u << 9,
  Feed = 1u << 10,
  FeedChanged = 1u << 11,
  Startup = 1u << 12,
  SessionSave = 1u << 13,
  SessionRestore = 1u << 14,
  Show = 1u << 15,
  SessionState = 1u << 16,
};
const char* name_of(PluginEntry entry);

// What a SHOW command of a plugin has given so far.
struct PluginRows {
  std::string types;  // one letter for each column, as in lokadb_show
  std::vector<std::vector<std::optional<std::string>>> rows;
};

struct PluginFailure {
  std::string sqlstate;
  std::string text;
  bool is_told = false;  // by the plugin itself: its text may be told to the client
};

class PluginCall {
 public:
  struct Subject {  // what the call is about; null where it is about none
    Batch* batch = nullptr;
    const SectionView* section = nullptr;
    TargetTable* targets = nullptr;
    PluginRows* rows = nullptr;
  };
  // `plugin`: null in the entry function, when there is no table yet. All borrowed.
  PluginCall(PluginEntry entry, std::string_view name, const lokadb_plugin* plugin, Subject subject);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  // The innermost one of this thread; null: none is under way.
  static PluginCall* current();

  // The plugin has used the host wrongly. The first failure is the one that is kept.
  void fault(std::string text);
  // What the plugin says of itself (lokadb_host.fail).
  void fail(std::string sqlstate, std::string text);

  const PluginEntry entry;
  const std::string_view name;
  const lokadb_plugin* const plugin;
  const Subject subject;
  std::optional<PluginFailure> failure;

 private:
  PluginCall* outer_;
};

// Five digits or capital letters, and not of class 00 (success).
bool is_error_sqlstate(std::string_view text);

}  // namespace lokadb
