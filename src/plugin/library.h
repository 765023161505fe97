// One shared object with a plugin in it: opened, asked for its table, and the table checked.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "plugin/lokadb_plugin.h"

namespace lokadb {

class PluginLibrary {
 public:
  // The error's text names the file and what is wrong with it. `name` is the one of the option `plugins`. Main thread.
  static Result<PluginLibrary> open(const std::string& path, std::string_view name);

  PluginLibrary(PluginLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), table_(other.table_) {}
  PluginLibrary& operator=(PluginLibrary&&) = delete;
  ~PluginLibrary();  // closes the file: nothing of the plugin may be used any more

  // A copy in which fields that the plugin's version lacks are zero. What it points to is in the file.
  const lokadb_plugin& table() const { return table_; }

 private:
  PluginLibrary() = default;
  std::string ask_for_table(std::string_view name);

  void* handle_ = nullptr;
  lokadb_plugin table_{};
};

// Empty, or what is wrong with a table: for `name`, as it came from the entry function. Pure.
std::string fault_of_table(const lokadb_plugin* given, std::string_view name);

// a-z, 0-9 and _, and none of the proxy's own sections.
bool is_plugin_name(std::string_view name);

}  // namespace lokadb
