// lokadb refs-diff, lokadb refs-sync: whether every row has its refs entry and every entry its row.
#include <cstdio>
#include <map>

#include "cli/command.h"
#include "cli/json.h"
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

std::string json_finding(const Finding& f) {
  JsonObject out;
  out.text("org", f.org).text("table", f.table).text("key", f.key).text("kind", name_of(f.kind));
  if (!f.why.empty()) out.text("why", f.why);
  return out.str();
}

void print_json(const RefsRepair& run, bool dry) {
  JsonObject out;
  out.raw(dry ? "repairable" : "repaired", json_array(run.repaired(), json_finding));
  out.raw("left", json_array(run.left(), json_finding));
  out.raw("failed", json_array(run.unsettled(), [](const Unsettled& u) {
            return JsonObject().text("what", u.what).text("reason", u.reason).str();
          }));
  out.raw(dry ? "sequences_behind" : "sequences_moved", json_array(run.sequences(), [](const SequenceMove& m) {
            return JsonObject().text("sequence", m.name).raw("from", m.from).raw("to", m.to).str();
          }));
  std::printf("%s\n", out.str().c_str());
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
