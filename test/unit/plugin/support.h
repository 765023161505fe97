// What the tests of plugins share: sections as in a file, chains of the plugins in test/abi/plugins and of installed
// ones, batches.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/support.h"
#include "plugin/chain.h"
#include "plugin/plugin.h"

namespace lokadb::test {

using Lines = std::vector<std::pair<std::string, std::string>>;

inline std::string built_plugin(const std::string& name) {
  const bool is_installed = name == "example" || name == "router" || name == "tenant";
  return LOKADB_TEST_BUILD + (is_installed ? "/plugins/" + name + "/" : "/test/abi/plugins/") + name + ".so";
}

// Sections as parse_config makes them; those of `names` have their library besides.
inline PluginSections sections_of(const TextList& names, const std::map<std::string, Lines>& written = {}) {
  PluginSections sections;
  auto add = [&sections](const std::string& name, const std::string& key, const std::string& value) {
    sections[name].place = "in configuration (x.ini:1)";
    sections[name].lines.push_back({key, value, "in configuration (x.ini:2)"});
  };
  for (const auto& name : names) add(name, "library", built_plugin(name));
  for (const auto& [name, lines] : written)
    for (const auto& [key, value] : lines) add(name, key, value);
  return sections;
}

inline Result<std::unique_ptr<PluginChain>> try_load(const TextList& names,
                                                     const std::map<std::string, Lines>& written = {}) {
  return PluginChain::load(names, sections_of(names, written));
}

inline std::unique_ptr<PluginChain> load(const TextList& names, const std::map<std::string, Lines>& written = {}) {
  auto loaded = try_load(names, written);
  if (!loaded) throw std::runtime_error(loaded.error().log_text());
  return std::move(*loaded);
}

inline std::string load_fault(const TextList& names, const std::map<std::string, Lines>& written = {}) {
  auto loaded = try_load(names, written);
  return loaded ? "loaded" : loaded.error().log_text();
}

inline BatchStatement simple(std::string_view text) {
  BatchStatement s;
  s.text = text;
  s.is_executed = true;
  return s;
}

inline BatchStatement bound(std::string_view text, std::vector<std::string_view> values) {
  BatchStatement s;
  s.form = LOKADB_BIND;
  s.text = text;
  s.is_executed = true;
  for (auto value : values) s.parameters.push_back({25, value.data() == nullptr, false, value});
  return s;
}

inline BatchContext context() {
  BatchContext c;
  c.database = "app";
  c.role = "alice";
  c.client_encoding = "UTF8";
  return c;
}

// A verdict as text: "cloud 7 #0", "refuse 42501 words"; "#": the reason's number, "-" without one.
inline std::string text_of(const BatchVerdict& v) {
  std::string reason = v.reason == kNoReason ? " -" : " #" + std::to_string(v.reason);
  switch (v.kind) {
    case LOKADB_NO_OPINION:
      return "no opinion";
    case LOKADB_CLOUD:
      return "cloud " + v.organization + reason;
    case LOKADB_DIRECT:
      return "direct " + v.organization + reason;
    case LOKADB_ASK:
      return "ask";
    default:
      return "refuse " + v.sqlstate + " " + v.message;
  }
}

inline std::string decided(PluginChain& chain, std::string_view sql = "select 1") {
  Batch batch(context(), {simple(sql)});
  return text_of(chain.begin(batch));
}

}  // namespace lokadb::test
