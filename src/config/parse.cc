#include "config/parse.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "config/entries.h"
#include "config/hba.h"

namespace lokadb {

namespace {

enum class Section { None, Pgbouncer, Databases, Users, Peers, Plugin };

// There may be a line for each of many organizations, so not by comparing each with each.
void keep_last_of_each_key(PluginSection& section) {
  std::vector<PluginSection::Line> kept;
  std::unordered_set<std::string> keys;
  for (auto line = section.lines.rbegin(); line != section.lines.rend(); ++line)
    if (keys.insert(line->key).second) kept.push_back(std::move(*line));
  std::reverse(kept.begin(), kept.end());
  section.lines = std::move(kept);
}

class ConfigBuilder : public IniHandler {
 public:
  ConfigBuilder(const std::string& path, const Config* previous) : is_reload_(previous != nullptr) {
    config_.path = path;
    config_.options = previous ? previous->options : default_options();
    if (!previous) config_.options.conffile = path;
    config_.userlist = previous ? previous->userlist : std::make_shared<const Userlist>();
    config_.hba = previous ? previous->hba : std::make_shared<const HbaRules>();
  }

  void at(const std::string& path, int line) override { path_ = &path, line_ = line; }
  bool section(std::string_view name, Faults& faults) override;
  bool value(std::string_view key, std::string_view value, Faults& faults) override;

  bool has_main_section() const { return has_main_section_; }
  bool has_plugins() const { return !config_.options.plugins.empty(); }
  // What PgBouncer says of the first section it does not know; empty: there is none.
  const std::string& unknown_section() const { return unknown_section_; }
  Config take() {
    for (auto& [name, plugin_section] : config_.sections) keep_last_of_each_key(plugin_section);
    return std::move(config_);
  }

 private:
  bool option(std::string_view key, std::string_view value, Faults& faults);
  bool database(std::string_view key, std::string_view value, Faults& faults);
  std::string place() const { return "in configuration (" + *path_ + ":" + std::to_string(line_) + ")"; }

  Config config_;
  const std::string* path_ = nullptr;
  int line_ = 0;
  std::string unknown_section_;
  PluginSection* plugin_section_ = nullptr;
  Section section_ = Section::None;
  const bool is_reload_;
  bool has_main_section_ = false;
};

bool ConfigBuilder::section(std::string_view name, Faults&) {
  if (name == "pgbouncer") {
    section_ = Section::Pgbouncer;
    has_main_section_ = true;
    reset_options(config_.options, is_reload_);  // each time: a second header undoes the first one's keys
  } else if (name == "databases") {
    section_ = Section::Databases;
  } else if (name == "users") {
    section_ = Section::Users;
  } else if (name == "peers") {
    section_ = Section::Peers;
  } else {
    // Which plugins there are may be said further down, and what they read is known once they are loaded.
    section_ = Section::Plugin;
    plugin_section_ = &config_.sections[std::string(name)];
    if (plugin_section_->place.empty()) plugin_section_->place = place();
    if (unknown_section_.empty()) unknown_section_ = "invalid section \"" + std::string(name) + "\" " + place();
  }
  return true;
}

bool ConfigBuilder::value(std::string_view key, std::string_view value, Faults& faults) {
  switch (section_) {
    case Section::None:
      faults.push_back("load_init_file: value without section: " + std::string(key));
      return false;
    case Section::Pgbouncer:
      return option(key, value, faults);
    case Section::Databases:
      return database(key, value, faults);
    case Section::Users: {
      auto user = parse_user_entry(key, value, faults);
      if (user) config_.users.insert_or_assign(user->name, *user);
      return user.has_value();
    }
    case Section::Peers: {
      auto peer = parse_peer_entry(key, value, faults);
      if (peer) config_.peers.insert_or_assign(peer->id, *peer);
      return peer.has_value();
    }
    case Section::Plugin:
      plugin_section_->lines.push_back({std::string(key), std::string(value), place()});
      return true;
  }
  return false;
}

bool ConfigBuilder::option(std::string_view key, std::string_view value, Faults& faults) {
  const OptionRow* row = find_option(key);
  if (!row) {
    faults.push_back("unknown parameter: pgbouncer/" + std::string(key));
    return false;
  }
  // PgBouncer does not even look at the value then.
  if (is_reload_ && row->applies == Applies::AtStart) return true;
  return set_option(config_.options, *row, value, faults);
}

bool ConfigBuilder::database(std::string_view key, std::string_view value, Faults& faults) {
  auto entry = parse_database_entry(key, value, faults);
  if (!entry) return false;
  if (entry->name == "*")
    config_.fallback = std::move(*entry);
  else
    config_.databases.insert_or_assign(entry->name, *entry);
  return true;
}

}  // namespace

std::optional<Config> parse_config(const std::string& path, const IniSource& source, const Config* previous,
                                   Faults& faults) {
  ConfigBuilder builder(path, previous);
  bool is_whole = read_ini(path, source, builder, faults);
  if (!builder.unknown_section().empty() && !builder.has_plugins()) {
    faults.insert(faults.begin(), builder.unknown_section());
    return std::nullopt;
  }
  if (!is_whole) return std::nullopt;
  if (!builder.has_main_section()) {
    faults.emplace_back("main section missing from config file");
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace lokadb
