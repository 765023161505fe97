// lokadb-plugin-check: runs a plugin without a proxy and says where it breaks its contract.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "check/runner.h"
#include "config/file.h"
#include "plugin/plugin.h"

namespace {

using namespace lokadb;
using namespace lokadb::check;

constexpr char kUsage[] =
    "usage: lokadb-plugin-check [option]... PLUGIN.so [SCRIPT]\n"
    "\n"
    "Loads the plugin without a proxy and runs built-in batches through it, then those of SCRIPT.\n"
    "\n"
    "  -n NAME                  its name; without it the file's, up to .so\n"
    "  -o KEY=VALUE             a line of its section\n"
    "  -o SECTION/KEY=VALUE     a line of another section\n"
    "  -t NUMBER                threads that run the batches together (4)\n"
    "  -v                       what happens in each batch\n"
    "\n"
    "Exit status: 0 all is well, 1 the plugin is not, 2 it was called wrongly.\n";

struct Arguments {
  std::string name, library, script;
  std::vector<std::string> lines;
  int threads = 4;
  bool is_verbose = false;
};

[[noreturn]] void end_with(int status, const std::string& text) {
  std::fputs(text.c_str(), status == 0 ? stdout : stderr);
  std::exit(status);
}

Arguments arguments_of(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool has_value = i + 1 < argc;
    if (word == "-h" || word == "--help") end_with(0, kUsage);
    if (word == "-v")
      a.is_verbose = true;
    else if (word == "-n" && has_value)
      a.name = argv[++i];
    else if (word == "-o" && has_value)
      a.lines.emplace_back(argv[++i]);
    else if (word == "-t" && has_value)
      a.threads = std::atoi(argv[++i]);
    else if (word.starts_with('-') || !a.script.empty())
      end_with(2, kUsage);
    else
      (a.library.empty() ? a.library : a.script) = word;
  }
  if (a.library.empty() || a.threads < 1 || a.threads > 64) end_with(2, kUsage);
  a.library = std::filesystem::absolute(a.library);
  if (a.name.empty()) a.name = std::filesystem::path(a.library).stem();
  return a;
}

PluginSections sections_of(const Arguments& a) {
  PluginSections sections;
  auto add = [&sections](const std::string& section, const std::string& key, const std::string& value) {
    sections[section].place = "on the command line";
    sections[section].lines.push_back({key, value, "on the command line"});
  };
  add(a.name, "library", a.library);
  for (const std::string& line : a.lines) {
    std::size_t equals = line.find('=');
    if (equals == std::string::npos) end_with(2, "-o wants KEY=VALUE\n");
    std::string key = line.substr(0, equals), section = a.name;
    if (std::size_t slash = key.find('/'); slash != std::string::npos) {
      section = key.substr(0, slash);
      key.erase(0, slash + 1);
    }
    add(section, key, line.substr(equals + 1));
  }
  return sections;
}

std::vector<Case> cases_of(const Arguments& a) {
  std::vector<Case> cases = built_in_cases();
  if (a.script.empty()) return cases;
  std::string why;
  auto text = read_file(a.script, why);
  if (!text) end_with(2, a.script + ": " + why + "\n");
  auto more = parse_script(*text);
  if (!more) end_with(2, a.script + ": " + more.error().log_text() + "\n");
  cases.insert(cases.end(), more->begin(), more->end());
  return cases;
}

int g_faults = 0;

void report(const std::string& what, const std::string& fault) {
  if (fault.empty()) return;
  ++g_faults;
  std::printf("FAULT  %s: %s\n", what.c_str(), fault.c_str());
}

void describe(const PluginFigures& f) {
  std::printf("%s %s, interface %u.%u, %zu reasons\n", f.name.c_str(), f.version.c_str(), f.abi_major, f.abi_minor,
              f.reasons.size());
}

// Every time: once, the machine may have been busy with something else.
bool is_always_slow(PluginChain& chain, const Case& c) {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t before = chain.figures().front().slow;
    run_case(chain, c);
    if (chain.figures().front().slow == before) return false;
  }
  return true;
}

void check_cases(PluginChain& chain, const Arguments& a, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    std::uint64_t slow_before = chain.figures().front().slow;
    Outcome outcome = run_case(chain, c);
    if (chain.figures().front().slow > slow_before && is_always_slow(chain, c))
      outcome.faults.emplace_back("a call took longer than 50 ms");
    std::printf("%s  %s: %s\n", outcome.faults.empty() ? "ok   " : "FAULT", c.name.c_str(), outcome.verdict.c_str());
    if (a.is_verbose)
      for (const auto& line : outcome.trace) std::printf("         %s\n", line.c_str());
    for (const auto& fault : outcome.faults) report(c.name, fault);
  }
  report("from " + std::to_string(a.threads) + " threads", run_together(chain, cases, a.threads));
}

void check_life(PluginChain& chain, const PluginSections& sections, const std::vector<Case>& cases) {
  if (auto done = chain.reload(sections); !done) report("reload", done.error().log_text());
  for (const auto& wish : chain.feeds("app")) {
    chain.feed_changed(wish.plugin, "app", "", false);
    if (wish.channel.empty()) report("feed", "has no channel, so it would only be read once");
  }
  for (const Case& c : cases)
    for (const auto& fault : run_case(chain, c).faults) report("after a reload, " + c.name, fault);
  PluginFigures f = chain.figures().front();
  std::printf("%llu calls, %llu us on average, %llu us at most\n", static_cast<unsigned long long>(f.calls),
              static_cast<unsigned long long>(f.calls > 0 ? f.total_us / f.calls : 0),
              static_cast<unsigned long long>(f.max_us));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a = arguments_of(argc, argv);
  PluginSections sections = sections_of(a);
  std::vector<Case> cases = cases_of(a);
  log_configure({});
  auto loaded = PluginChain::load({a.name}, sections);
  if (!loaded) {
    report("loading", loaded.error().log_text());
  } else {
    describe((*loaded)->figures().front());
    check_cases(**loaded, a, cases);
    check_life(**loaded, sections, cases);
    loaded->reset();
  }
  std::printf(g_faults == 0 ? "no faults\n" : "%d faults\n", g_faults);
  return g_faults == 0 ? 0 : 1;
}
