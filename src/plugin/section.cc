#include "plugin/section.h"

#include <algorithm>

namespace lokadb {

namespace {

// Whether `plugin` allows a line `key` in the section `name`.
bool knows_line(const lokadb_plugin& plugin, std::string_view name, std::string_view key) {
  if (name == plugin.name) {
    return key == kLibraryOption || key == kRequiredOption ||
           find_plugin_option(plugin.options, plugin.option_count, key) != nullptr;
  }
  const lokadb_more_section* more = find_more_section(plugin, name);
  return more != nullptr &&
         (more->takes_any != 0 || find_plugin_option(more->options, more->option_count, key) != nullptr);
}

bool reads_section(const lokadb_plugin& plugin, std::string_view name) {
  return name == plugin.name || find_more_section(plugin, name) != nullptr;
}

}  // namespace

const lokadb_option* find_plugin_option(const lokadb_option* options, std::uint32_t count, std::string_view name) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (name == options[i].name) return &options[i];
  return nullptr;
}

const lokadb_more_section* find_more_section(const lokadb_plugin& plugin, std::string_view name) {
  for (std::uint32_t i = 0; i < plugin.section_count; ++i)
    if (name == plugin.sections[i].name) return &plugin.sections[i];
  return nullptr;
}

const PluginSection* SectionView::section(std::string_view name) const {
  auto it = sections_.find(name);
  return it == sections_.end() ? nullptr : &it->second;
}

std::optional<std::string_view> SectionView::option(std::string_view name) const {
  std::string_view of = plugin_.name;
  const lokadb_option* options = plugin_.options;
  std::uint32_t count = plugin_.option_count;
  bool takes_any = false;
  if (auto dot = name.find('.'); dot != std::string_view::npos) {
    of = name.substr(0, dot);
    name.remove_prefix(dot + 1);
    const lokadb_more_section* more = find_more_section(plugin_, of);
    if (more == nullptr) return std::nullopt;
    options = more->options;
    count = more->option_count;
    takes_any = more->takes_any != 0;
  }
  const lokadb_option* declared = find_plugin_option(options, count, name);
  if (declared == nullptr && !takes_any) return std::nullopt;
  if (const PluginSection* s = section(of))
    if (const PluginSection::Line* line = s->find(name)) return std::string_view(line->value);
  if (declared != nullptr && declared->default_value != nullptr) return declared->default_value;
  return std::string_view();
}

SectionView::Line SectionView::line(std::string_view of, std::uint32_t index, std::string_view& name,
                                    std::string_view& value) const {
  if (find_more_section(plugin_, of) == nullptr) return Line::NotDeclared;
  const PluginSection* s = section(of);
  // The parser has kept the last line of each key alone.
  if (s == nullptr || index >= s->lines.size()) return Line::NoMore;
  name = s->lines[index].key;
  value = s->lines[index].value;
  return Line::Found;
}

void check_plugin_sections(const PluginSections& sections, const std::vector<const lokadb_plugin*>& plugins,
                           Faults& faults) {
  for (const auto& [section_name, section] : sections) {
    const std::string& name = section_name;
    auto any = [&plugins](auto claim) { return std::any_of(plugins.begin(), plugins.end(), claim); };
    if (!any([&](const lokadb_plugin* p) { return reads_section(*p, name); })) {
      faults.push_back("invalid section \"" + name + "\" " + section.place);
      continue;
    }
    for (const auto& line : section.lines)
      if (!any([&](const lokadb_plugin* p) { return knows_line(*p, name, line.key); }))
        faults.push_back("unknown parameter: " + name + "/" + line.key + " " + line.place);
  }
}

}  // namespace lokadb
