// load_config() and config_with_option(): parsing, with files and the log around it.
#include <utility>

#include "base/log.h"
#include "config/config.h"
#include "config/file.h"
#include "config/hba.h"
#include "config/options.h"
#include "config/parse.h"
#include "config/userlist.h"

namespace lokadb {

namespace {

void log_faults(const Faults& faults) {
  for (const auto& fault : faults) log_line(LogLevel::Error, "%s", fault.c_str());
}

Error refusal(const Faults& faults, std::string to_client) {
  std::string all;
  for (const auto& fault : faults) all.append(all.empty() ? "" : "; ").append(fault);
  return {sqlstate::kReloadFailed, Severity::Error, std::move(to_client), std::move(all)};
}

// These two accept or refuse a client without looking it up in the file.
bool needs_userlist(const Options& options) {
  return options.auth_file && options.auth_type != AuthType::Any && options.auth_type != AuthType::Pam;
}

// An unreadable file leaves the list that `config` has already.
void refresh_userlist(Config& config) {
  if (!needs_userlist(config.options)) return;
  if (auto list = load_userlist(*config.options.auth_file))
    config.userlist = std::make_shared<const Userlist>(std::move(*list));
}

void log_warnings(const Faults& warnings) {
  for (const auto& warning : warnings) log_line(LogLevel::Warning, "%s", warning.c_str());
}

IdentMaps load_ident(const OptionalText& path) {
  if (!path || path->empty()) return {};
  std::string why;
  auto text = read_file(*path, why);
  if (!text) {
    log_line(LogLevel::Error, "could not open ident config file %s: %s", path->c_str(), why.c_str());
    return {};
  }
  auto parsed = parse_ident(*text);
  log_warnings(parsed.warnings);
  return std::move(parsed.maps);
}

// Without a file that can be read there are no rules, and nobody gets in.
void refresh_hba(Config& config) {
  const Options& o = config.options;
  if (o.auth_type != AuthType::Hba) return;
  IdentMaps maps = load_ident(o.auth_ident_file);
  std::string why;
  auto text = read_file(o.auth_hba_file, why);
  if (!text) log_line(LogLevel::Error, "could not open hba config file %s: %s", o.auth_hba_file.c_str(), why.c_str());
  auto parsed = text ? parse_hba(*text, o.auth_hba_file, maps, read_file) : HbaText();
  log_warnings(parsed.warnings);
  config.hba = std::make_shared<const HbaRules>(std::move(parsed.rules));
}

// As in PgBouncer an entry cannot lose its user= without a restart.
void keep_forced_users(Config& config, const Config& previous) {
  for (auto& [name, entry] : config.databases) {
    auto old = previous.databases.find(name);
    if (entry.user || old == previous.databases.end() || !old->second.user) continue;
    log_line(LogLevel::Warning, "losing forced user not supported, keeping old setting");
    entry.user = old->second.user;
    entry.password = old->second.password;
  }
}

}  // namespace

Result<ConfigPtr> load_config(const std::string& path, const ConfigPtr& previous) {
  Faults faults;
  auto config = parse_config(path, read_file, previous.get(), faults);
  log_faults(faults);
  if (!config) {
    if (previous) log_line(LogLevel::Warning, "config file loading failed");
    return refusal(faults, "cannot load config file");
  }
  if (previous) keep_forced_users(*config, *previous);
  refresh_userlist(*config);
  refresh_hba(*config);
  return ConfigPtr(std::make_shared<const Config>(std::move(*config)));
}

Result<ConfigPtr> config_with_option(const ConfigPtr& config, std::string_view key, std::string_view value) {
  Faults faults;
  const OptionRow* row = find_option(key);
  if (!row) {
    faults.push_back("unknown parameter: pgbouncer/" + std::string(key));
  } else if (row->applies == Applies::AtStart) {
    return config;
  } else {
    auto changed = std::make_shared<Config>(*config);
    if (set_option(changed->options, *row, value, faults)) {
      if (key == "auth_file" || key == "auth_type") refresh_userlist(*changed);
      if (key == "auth_hba_file" || key == "auth_ident_file" || key == "auth_type") refresh_hba(*changed);
      return ConfigPtr(std::move(changed));
    }
    if (faults.empty())
      faults.push_back("invalid value \"" + std::string(value) + "\" for parameter " + std::string(key));
  }
  log_faults(faults);
  return refusal(faults, "SET failed");
}

}  // namespace lokadb
