// How a PluginChain is made and reloaded.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "config/words.h"
#include "plugin/chain.h"
#include "plugin/plugin.h"

namespace lokadb {

namespace {

struct HostOptions {
  std::string library;
  bool is_required = true;
};

Error refusal(std::string text) { return {sqlstate::kReloadFailed, Severity::Error, std::move(text), {}}; }

// The two keys of a plugin's section that are ours.
Result<HostOptions> host_options(std::string_view name, const PluginSections& sections) {
  HostOptions options;
  auto it = sections.find(name);
  const PluginSection::Line* library = it != sections.end() ? it->second.find(kLibraryOption) : nullptr;
  const PluginSection::Line* required = it != sections.end() ? it->second.find(kRequiredOption) : nullptr;
  options.library = library != nullptr ? library->value : std::string(name) + ".so";
  // Never the search path of the dynamic linker: a plain name is that of an installed plugin.
  if (options.library.find('/') == std::string::npos)
    options.library = std::string(plugin_folder()) + "/" + options.library;
  if (required != nullptr) {
    auto value = parse_int(required->value);
    if (!value) return refusal("invalid value \"" + required->value + "\" for parameter required " + required->place);
    options.is_required = *value != 0;
  }
  return options;
}

PluginSection section_of(const PluginSections& sections, const std::string& name) {
  auto it = sections.find(name);
  return it != sections.end() ? it->second : PluginSection();
}

std::string joined(const Faults& faults) {
  std::string all;
  for (const auto& fault : faults) all.append(all.empty() ? "" : "; ").append(fault);
  return all;
}

std::vector<const lokadb_plugin*> tables_of(const std::vector<std::unique_ptr<Plugin>>& plugins) {
  std::vector<const lokadb_plugin*> tables;
  for (const auto& plugin : plugins) tables.push_back(&plugin->table());
  return tables;
}

// Of the line that a plugin complains about, as in "[section] key ...": that of the first word that is a key there.
// Empty: it cannot be told.
std::string place_of(std::string_view text, const PluginSections& sections) {
  std::size_t end = text.find(']');
  if (!text.starts_with('[') || end == text.npos) return {};
  auto section = sections.find(text.substr(1, end - 1));
  if (section == sections.end()) return {};
  constexpr std::string_view kBetween = " :,;\"";
  for (std::size_t at = text.find_first_not_of(kBetween, end + 1); at != text.npos;
       at = text.find_first_not_of(kBetween, end)) {
    end = std::min(text.find_first_of(kBetween, at), text.size());
    if (const auto* line = section->second.find(text.substr(at, end - at))) return " " + line->place;
    if (end == text.size()) break;
  }
  return " " + section->second.place;
}

std::string words_of_failure(const Plugin& plugin, const char* what, const PluginFailure& failure,
                             const PluginSections& sections) {
  return "plugin \"" + plugin.name() + "\" (" + plugin.figures().library + "): " + what + " failed: " + failure.text +
         place_of(failure.text, sections);
}

}  // namespace

std::string_view plugin_folder() { return LOKADB_PLUGIN_FOLDER; }

Result<std::unique_ptr<PluginChain>> PluginChain::load(const TextList& names, const PluginSections& sections) {
  std::unique_ptr<PluginChain> chain(new PluginChain);
  if (auto opened = chain->open(names, sections); !opened) return opened.error();
  for (auto& plugin : chain->plugins_)
    if (auto failure = plugin->init(sections)) return refusal(words_of_failure(*plugin, "init", *failure, sections));
  for (const auto& plugin : chain->plugins_) {
    PluginFigures f = plugin->figures();
    log_line(LogLevel::Log, "plugin %s %s loaded from %s%s", f.name.c_str(), f.version.c_str(), f.library.c_str(),
             f.is_required ? "" : " (advisory)");
  }
  chain->sections_ = sections;
  return chain;
}

Result<Done> PluginChain::open(const TextList& names, const PluginSections& sections) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_plugin_name(*name)) return refusal("\"" + *name + "\" cannot be the name of a plugin");
    if (std::find(names.begin(), name, *name) != name) return refusal("plugin \"" + *name + "\" is named twice");
    auto options = host_options(*name, sections);
    if (!options) return options.error();
    auto library = PluginLibrary::open(options->library, *name);
    if (!library) return refusal(library.error().log_text());
    plugins_.push_back(std::make_unique<Plugin>(std::move(*library), *name, options->library, options->is_required));
  }
  Faults faults;
  check_plugin_sections(sections, tables_of(plugins_), faults);
  if (!faults.empty()) return refusal(joined(faults));
  return Done{};
}

Result<Done> PluginChain::reload(const PluginSections& sections) {
  std::lock_guard guard(news_);
  Faults faults;
  check_plugin_sections(sections, tables_of(plugins_), faults);
  std::vector<bool> required;
  for (auto& plugin : plugins_) {
    auto options = host_options(plugin->name(), sections);
    if (!options) {
      faults.push_back(options.error().log_text());
      continue;
    }
    required.push_back(options->is_required);
    if (plugin->table().reload == nullptr &&
        section_of(sections, plugin->name()) != section_of(sections_, plugin->name()))
      log_line(LogLevel::Warning, "plugin %s: changes of its section count after a restart", plugin->name().c_str());
    if (options->library != plugin->figures().library)
      log_line(LogLevel::Warning, "plugin %s: another library counts after a restart", plugin->name().c_str());
  }
  if (!faults.empty()) return refusal(joined(faults));
  for (std::size_t i = 0; i < plugins_.size(); ++i) {
    auto failure = plugins_[i]->reload(sections);
    if (!failure) continue;
    restore(i);
    return refusal(words_of_failure(*plugins_[i], "reload", *failure, sections));
  }
  required_before_.clear();
  for (std::size_t i = 0; i < plugins_.size(); ++i) {
    required_before_.push_back(plugins_[i]->is_required());
    plugins_[i]->set_required(required[i]);
  }
  sections_before_ = std::exchange(sections_, sections);
  return Done{};
}

void PluginChain::undo_reload() {
  std::lock_guard guard(news_);
  sections_ = std::move(sections_before_);
  restore(plugins_.size());
  for (std::size_t i = 0; i < plugins_.size(); ++i) plugins_[i]->set_required(required_before_[i]);
}

// The first `reloaded` plugins have the new sections already and get the old ones again. One that refuses them has
// promised the impossible, and cannot be trusted with a batch.
void PluginChain::restore(std::size_t reloaded) {
  for (std::size_t i = 0; i < reloaded; ++i) {
    auto failure = plugins_[i]->reload(sections_);
    if (!failure) continue;
    log_line(LogLevel::Error, "%s; it is out of service until a restart",
             words_of_failure(*plugins_[i], "taking a reload back", *failure, sections_).c_str());
    plugins_[i]->disable();
  }
}

}  // namespace lokadb
