// lokadb SUBCOMMAND [flags]: administers tables and organizations. Exit status: 0 done, 1 refused or found something,
// 2 called wrongly.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "build_config.h"
#include "cli/command.h"
#include "cli/failure.h"

namespace lokadb::cli {
namespace {

constexpr const Command* kCommands[] = {&kInit,           &kAddTable, &kRemoveTable, &kTables,     &kOrgs,
                                        &kMoveOrg,        &kPause,    &kResume,      &kOrgProfile, &kKeygen,
                                        &kOrgCredentials, &kRefsDiff, &kRefsSync,    &kExplain};

int width(std::string_view text) {
  int n = 0;
  for (char c : text) n += (c & 0xc0) != 0x80;
  return n;
}

void usage(std::FILE* out) {
  std::fprintf(out, "Usage: lokadb SUBCOMMAND [flags]\n       lokadb SUBCOMMAND -h\n\n");
  for (const Command* c : kCommands)
    std::fprintf(out, "  %-16.*s %.*s\n", static_cast<int>(c->name.size()), c->name.data(),
                 static_cast<int>(c->summary.size()), c->summary.data());
}

void help(const Command& command, std::FILE* out) {
  std::fprintf(out, "Usage: lokadb %.*s [flags] %.*s\n\n%.*s.\n\n", static_cast<int>(command.name.size()),
               command.name.data(), static_cast<int>(command.arguments.size()), command.arguments.data(),
               static_cast<int>(command.summary.size()), command.summary.data());
  for (const FlagSpec& flag : command.flags) {
    std::string left = "-" + std::string(flag.name) + (flag.value.empty() ? "" : " " + std::string(flag.value));
    std::fprintf(out, "  %s%*s %.*s%s\n", left.c_str(), std::max(0, 26 - width(left)), "",
                 static_cast<int>(flag.help.size()), flag.help.data(), flag.required ? " (required)" : "");
  }
}

int run(const Command& command, const std::vector<std::string>& arguments) {
  for (const std::string& a : arguments) {
    if (a == "--") break;
    if (a == "-h" || a == "--help" || a == "-help") return help(command, stdout), 0;
  }
  try {
    Flags flags(command.flags, arguments);
    if (!flags.rest().empty() && command.arguments.empty())
      throw Failure{"too many arguments: " + flags.rest().front(), kUsage};
    return command.run(flags);
  } catch (const Failure& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "lokadb: %s\n", failure.text.c_str());
    if (failure.status == kUsage) help(command, stderr);
    return failure.status;
  }
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return usage(stderr), kUsage;
  if (words[0] == "-h" || words[0] == "--help" || words[0] == "help") return usage(stdout), 0;
  if (words[0] == "-V" || words[0] == "--version") return std::printf("lokadb %s\n", PACKAGE_VERSION), 0;
  for (const Command* c : kCommands)
    if (c->name == words[0]) return run(*c, {words.begin() + 1, words.end()});
  std::fprintf(stderr, "lokadb: unknown subcommand %s\n", words[0].c_str());
  usage(stderr);
  return kUsage;
}

}  // namespace
}  // namespace lokadb::cli

int main(int argc, char** argv) { return lokadb::cli::main(argc, argv); }
