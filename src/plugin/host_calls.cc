// lokadb_host: the table, log and failure, configuration.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "build_config.h"
#include "plugin/host_functions.h"

namespace lokadb {

void HostCalls::log(int level, lokadb_string text) {
  constexpr LogLevel kLevels[] = {LogLevel::Error, LogLevel::Warning, LogLevel::Log, LogLevel::Debug};
  PluginCall* call = PluginCall::current();
  if (level < 0 || level >= static_cast<int>(std::size(kLevels)) || (text.data == nullptr && text.size != 0)) {
    if (call != nullptr) call->fault(format("called log with level %d", level));
    return;
  }
  if (!log_enabled(kLevels[level])) return;
  int size = static_cast<int>(std::min<std::size_t>(text.size, 2000));
  int name_size = call != nullptr ? static_cast<int>(call->name.size()) : 0;
  log_line(kLevels[level], "plugin%s%.*s: %.*s", name_size > 0 ? " " : "", name_size,
           name_size > 0 ? call->name.data() : "", size, size > 0 ? text.data : "");
}

int HostCalls::fail(const char* sqlstate, lokadb_string text) {
  return guarded<int>(LOKADB_FAILED, [&]() -> int {
    PluginCall* call = PluginCall::current();
    if (call == nullptr) {
      log_line(LogLevel::Error, "a plugin called fail outside of its own functions");
      return LOKADB_FAILED;
    }
    std::string why;
    if (take_text(*call, "fail", text, why)) call->fail(sqlstate != nullptr ? sqlstate : "", told_text(why));
    return LOKADB_FAILED;
  });
}

lokadb_string HostCalls::option(const lokadb_section* handle, lokadb_string name) {
  return guarded<lokadb_string>({}, [&]() -> lokadb_string {
    PluginCall* call = call_for("option", kConfiguring);
    std::string wanted;
    if (call == nullptr || !take_text(*call, "option", name, wanted) || !is_own(*call, "option", handle)) return {};
    auto value = call->subject.section->option(wanted);
    if (!value) {
      call->fault("asked for option " + wanted + ", which it does not declare");
      return {};
    }
    return string_of(*value);
  });
}

int HostCalls::line(const lokadb_section* handle, lokadb_string of, std::uint32_t index, lokadb_string* name,
                    lokadb_string* value) {
  return guarded<int>(LOKADB_FAILED, [&]() -> int {
    PluginCall* call = call_for("line", kConfiguring);
    std::string section;
    if (call == nullptr || !take_text(*call, "line", of, section) || !is_own(*call, "line", handle))
      return LOKADB_FAILED;
    std::string_view key, text;
    switch (call->subject.section->line(section, index, key, text)) {
      case SectionView::Line::Found:
        break;
      case SectionView::Line::NoMore:
        return LOKADB_FAILED;
      case SectionView::Line::NotDeclared:
        call->fault("asked for lines of section " + section + ", which it does not declare");
        return LOKADB_FAILED;
    }
    if (name != nullptr) *name = string_of(key);
    if (value != nullptr) *value = string_of(text);
    return LOKADB_OK;
  });
}

bool HostCalls::is_own(PluginCall& call, const char* function, const lokadb_section* handle) {
  if (handle != nullptr && reinterpret_cast<const SectionView*>(handle) == call.subject.section) return true;
  call.fault(format("called %s for a section that is not that of this call", function));
  return false;
}

template <class T>
static bool is_whole_number(std::string_view text) {
  T value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Whether a text can stand in a column of this type. Clients read numbers as their type says.
static bool fits(std::string_view text, char type) {
  if (type == 'i') return is_whole_number<std::int32_t>(text);
  return type == 't' || is_whole_number<std::int64_t>(text);
}

int HostCalls::add_row(lokadb_rows* handle, const lokadb_string* cells, std::uint32_t count) {
  return guarded<int>(LOKADB_FAILED, [&]() -> int {
    PluginCall* call = call_for("add_row", bit(PluginEntry::Show));
    if (call == nullptr) return LOKADB_FAILED;
    auto* rows = reinterpret_cast<PluginRows*>(handle);
    if (rows == nullptr || rows != call->subject.rows || cells == nullptr || count != rows->types.size()) {
      call->fault(format("called add_row for another command, or with %u cells", count));
      return LOKADB_FAILED;
    }
    std::vector<std::optional<std::string>> row(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (cells[i].data == nullptr && cells[i].size == 0) continue;
      if (!take_text(*call, "add_row", cells[i], row[i].emplace())) return LOKADB_FAILED;
      row[i] = told_text(*row[i]);
      if (!fits(*row[i], rows->types[i])) {
        call->fault("called add_row with a cell that is no number of its column: " + *row[i]);
        return LOKADB_FAILED;
      }
    }
    rows->rows.push_back(std::move(row));
    return LOKADB_OK;
  });
}

const lokadb_host* plugin_host() {
  static constexpr lokadb_host kHost = {
      sizeof(lokadb_host),    LOKADB_ABI_MAJOR,      LOKADB_ABI_MINOR,      "lokadb-proxy " PACKAGE_VERSION,
      HostCalls::log,         HostCalls::fail,       HostCalls::option,     HostCalls::batch_info,
      HostCalls::statement,   HostCalls::parameter,  HostCalls::split,      HostCalls::allocate,
      HostCalls::publish,     HostCalls::fact_count, HostCalls::fact,       HostCalls::add_step,
      HostCalls::step_rows,   HostCalls::step_cell,  HostCalls::add_target, HostCalls::slot,
      HostCalls::setting,     HostCalls::line,       HostCalls::replace,    HostCalls::add_row,
      HostCalls::own_setting,
  };
  return &kHost;
}

}  // namespace lokadb
