// lokadb refs-diff, lokadb refs-sync: whether every row has its refs entry and every entry its row.
#include <cstdio>
#include <map>

#include "cli/command.h"
#include "cli/refs_repair.h"

namespace lokadb::cli {

namespace {

using Kind = Finding::Kind;

constexpr std::size_t kKeysShown = 10;

constexpr FlagSpec kOrgFlag{"org", "N", "only this organization"};
constexpr FlagSpec kTableFlag{"table", "T", "only this table, quoted as in SQL, with its schema unless that is public"};
constexpr FlagSpec kControlFlag{"control-plane", "CP",
                                "connection string of the control plane, for organizations the cloud has no access to"};
constexpr FlagSpec kKeyFlag{"key", "FILE", "its key file"};
constexpr FlagSpec kTimeoutFlag{"timeout", "DURATION",
                                "how long to wait for the open transactions of an organization (60s)"};

constexpr FlagSpec kDiffFlags[] = {kDbFlag, kOrgFlag, kTableFlag, kControlFlag, kKeyFlag, kTimeoutFlag, kJsonFlag};
constexpr FlagSpec kSyncFlags[] = {
    kDbFlag,
    kOrgFlag,
    kTableFlag,
    kControlFlag,
    kKeyFlag,
    kTimeoutFlag,
    {"accept-many", "", "also removes most entries of an organization (over 1000 of a table) if they have no row"},
    kDryRunFlag,
    kJsonFlag,
};

const char* name_of(Kind kind) {
  return kind == Kind::Missing ? "missing" : kind == Kind::Stale ? "stale" : "conflict";
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// One JSON array from a list.
template <class List, class Write>
std::string json_array(const List& list, Write&& write) {
  std::string out = "[";
  for (const auto& element : list) out += (out.size() > 1 ? "," : "") + write(element);
  return out + "]";
}

std::string json_finding(const Finding& f) {
  std::string out = "{\"org\":" + json_text(f.org) + ",\"table\":" + json_text(f.table) +
                    ",\"key\":" + json_text(f.key) + ",\"kind\":\"" + name_of(f.kind) + "\"";
  return out + (f.why.empty() ? "" : ",\"why\":" + json_text(f.why)) + "}";
}

void print_json(const RefsRepair& run, bool dry) {
  std::string found = json_array(run.repaired(), json_finding), left = json_array(run.left(), json_finding);
  std::string failed = json_array(run.unsettled(), [](const Unsettled& u) {
    return "{\"what\":" + json_text(u.what) + ",\"reason\":" + json_text(u.reason) + "}";
  });
  std::string sequences = json_array(run.sequences(), [](const SequenceMove& m) {
    return "{\"sequence\":" + json_text(m.name) + ",\"from\":" + m.from + ",\"to\":" + m.to + "}";
  });
  std::printf("{\"%s\":%s,\"left\":%s,\"failed\":%s,\"%s\":%s}\n", dry ? "repairable" : "repaired", found.c_str(),
              left.c_str(), failed.c_str(), dry ? "sequences_behind" : "sequences_moved", sequences.c_str());
}

// One line for the findings of one organization, table, kind and reason.
void print_findings(const std::vector<Finding>& findings, bool dry) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Finding& f : findings) {
    bool left = !f.why.empty();
    std::string what = f.kind == Kind::Conflict  ? "in conflict"
                       : f.kind == Kind::Missing ? (dry || left ? "with a row and no refs entry" : "given a refs entry")
                       : dry || left             ? "with a refs entry and no row"
                                                 : "freed of a refs entry without a row";
    lines[f.table + ", organization " + f.org + ": keys " + what + (left ? " (" + f.why + ")" : "")].push_back(f.key);
  }
  for (const auto& [line, keys] : lines) {
    std::string list;
    for (std::size_t i = 0; i < keys.size() && i < kKeysShown; ++i) list += (i > 0 ? ", " : "") + keys[i];
    if (keys.size() > kKeysShown) list += ", … (" + std::to_string(keys.size()) + ")";
    std::printf("%s: %s\n", line.c_str(), list.c_str());
  }
}

void print_text(const RefsRepair& run, bool dry) {
  print_findings(run.repaired(), dry);
  print_findings(run.left(), dry);
  for (const SequenceMove& m : run.sequences())
    std::printf(dry ? "sequence %s is at %s, behind the largest key %s\n" : "sequence %s moved from %s to %s\n",
                m.name.c_str(), m.from.c_str(), m.to.c_str());
  for (const Unsettled& u : run.unsettled()) std::fprintf(stderr, "lokadb: %s: %s\n", u.what.c_str(), u.reason.c_str());
  std::size_t repaired = run.repaired().size(), left = run.left().size();
  if (repaired + left == 0)
    std::printf(run.unsettled().empty() ? "refs and rows agree\n"
                                        : "refs and rows agree, as far as they could be seen\n");
  else if (dry)
    std::printf("%zu found\n", repaired + left);
  else
    std::printf("%zu repaired, %zu left\n", repaired, left);
}

int run(const Flags& flags, bool dry) {
  RefsRepair repair(flags, dry);
  repair.run();
  flags.has("json") ? print_json(repair, dry) : print_text(repair, dry);
  bool is_clean = repair.left().empty() && repair.unsettled().empty() && (!dry || repair.repaired().empty());
  return is_clean ? 0 : kRefused;
}

int diff(const Flags& flags) { return run(flags, true); }
int sync(const Flags& flags) { return run(flags, flags.has("dry-run")); }

}  // namespace

const Command kRefsDiff{"refs-diff", "Finds rows without a refs entry and refs entries without a row", "", kDiffFlags,
                        diff};
const Command kRefsSync{"refs-sync", "Repairs what refs-diff finds, and moves sequences past the largest key", "",
                        kSyncFlags, sync};

}  // namespace lokadb::cli
