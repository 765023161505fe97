#include "plugin/call.h"

#include <algorithm>
#include <utility>

namespace lokadb {

namespace {

thread_local PluginCall* t_current = nullptr;

constexpr std::string_view kInternalError = "XX000";

}  // namespace

const char* name_of(PluginEntry entry) {
  switch (entry) {
    case PluginEntry::Entry:
      return "lokadb_plugin_entry";
    case PluginEntry::Init:
      return "init";
    case PluginEntry::Reload:
      return "reload";
    case PluginEntry::Destroy:
      return "destroy";
    case PluginEntry::SessionBegin:
      return "session_begin";
    case PluginEntry::SessionEnd:
      return "session_end";
    case PluginEntry::Inspect:
      return "inspect";
    case PluginEntry::Decide:
      return "decide";
    case PluginEntry::Review:
      return "review";
    case PluginEntry::Observe:
      return "observe";
    case PluginEntry::Feed:
      return "feed";
    case PluginEntry::FeedChanged:
      return "feed_changed";
    case PluginEntry::Startup:
      return "startup";
    case PluginEntry::SessionSave:
      return "session_save";
    case PluginEntry::SessionRestore:
      return "session_restore";
    case PluginEntry::Show:
      return "show";
    case PluginEntry::SessionState:
      return "session_state";
  }
  return "?";
}

PluginCall::PluginCall(PluginEntry e, std::string_view n, const lokadb_plugin* p, Subject s)
    : entry(e), name(n), plugin(p), subject(s), outer_(std::exchange(t_current, this)) {}

PluginCall::~PluginCall() { t_current = outer_; }

PluginCall* PluginCall::current() { return t_current; }

void PluginCall::fault(std::string text) {
  if (!failure) failure = PluginFailure{std::string(kInternalError), std::move(text), false};
}

void PluginCall::fail(std::string sqlstate, std::string text) {
  if (failure) return;
  if (text.empty()) return fault("failed without saying why");
  if (sqlstate.empty()) sqlstate = kInternalError;
  if (!is_error_sqlstate(sqlstate)) return fault("failed with a SQLSTATE that is none: " + text);
  failure = PluginFailure{std::move(sqlstate), std::move(text), true};
}

bool is_error_sqlstate(std::string_view text) {
  return text.size() == 5 && !text.starts_with("00") &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
}

}  // namespace lokadb
