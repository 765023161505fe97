// The part of the configuration file that a plugin may see: its own section, and the further ones that it declared.
// Borrowed: lives for one call of init or reload.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/options.h"
#include "plugin/lokadb_plugin.h"

namespace lokadb {

class SectionView {
 public:
  SectionView(const lokadb_plugin& plugin, const PluginSections& sections) : plugin_(plugin), sections_(sections) {}

  // "user" of the own section, "customers_app.user" of a further one: as written, else the default. data() null:
  // neither. nullopt: the plugin never declared such an option.
  std::optional<std::string_view> option(std::string_view name) const;

  enum class Line : unsigned char { Found, NoMore, NotDeclared };
  Line line(std::string_view section, std::uint32_t index, std::string_view& name, std::string_view& value) const;

 private:
  const PluginSection* section(std::string_view name) const;

  const lokadb_plugin& plugin_;
  const PluginSections& sections_;
};

// The keys of a plugin's own section that are the host's.
inline constexpr std::string_view kLibraryOption = "library";
inline constexpr std::string_view kRequiredOption = "required";

// nullptr: not in the table.
const lokadb_option* find_plugin_option(const lokadb_option* options, std::uint32_t count, std::string_view name);
// nullptr: the plugin does not read such a section.
const lokadb_more_section* find_more_section(const lokadb_plugin& plugin, std::string_view name);

// Whether each section and each of its lines is known to one of the plugins at least. Adds a fault for each that is
// not.
void check_plugin_sections(const PluginSections& sections, const std::vector<const lokadb_plugin*>& plugins,
                           Faults& faults);

}  // namespace lokadb
