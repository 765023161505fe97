// Configuration files of any bytes: parsed as at start and as a reload. An include finds the same text again, so the
// nesting limit is met too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/parse.h"

using namespace lokadb;

namespace {

// Accepted or refused with a reason, never both.
std::optional<Config> parse(const IniSource& source, const Config* previous) {
  Faults faults;
  auto config = parse_config("fuzz.ini", source, previous, faults);
  if (config.has_value() != faults.empty()) std::abort();
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  IniSource source = [&text](const std::string& path, std::string& why) -> std::optional<std::string> {
    if (path != "missing") return text;
    why = "No such file or directory";
    return std::nullopt;
  };
  auto config = parse(source, nullptr);
  if (!config) return 0;
  // What is good at start is good as a reload, and every option can be shown.
  auto again = parse(source, &*config);
  if (!again || again->databases != config->databases) std::abort();
  if (option_lines(again->options).size() != option_rows().size()) std::abort();
  return 0;
}
