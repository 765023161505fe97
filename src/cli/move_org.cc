// lokadb move-org: an organization goes to a database of its own, or comes home.
//
// Until the swap, one transaction in the cloud, everything can be taken back; the journal (lokadb.organizations.step)
// lets a move that was cut off be begun again or undone.
#include "cli/move_org.h"

#include <cstdio>
#include <thread>

#include "cli/command.h"
#include "cli/copy_tables.h"
#include "cli/credentials.h"
#include "cli/organization.h"
#include "cli/pause.h"
#include "cli/proxy_config.h"

namespace lokadb::cli {

namespace {

constexpr int kSwapTries = 30;

constexpr FlagSpec kFlags[] = {
    kDbFlag,
    {"org", "N", "the organization", true},
    {"to", "ORGDB",
     "its database: host and port as the proxy and the foreign server dial them; the role may create there"},
    {"back", "", "comes home; -to is then only needed if the way there has changed"},
    {"undo", "", "takes a move there or home back that was cut off before its end"},
    {"control-plane", "CP", "connection string of the control plane, which has the credentials"},
    {"key", "FILE", "its key file"},
    {"proxy-config", "INI", "configuration of the proxy: if it has the direct role, the profile becomes fdw+direct"},
    {"profile", "P", "fdw, fdw+direct or direct"},
    {"jobs", "N", "tables copied at a time: 1 to 64 (4)"},
    {"timeout", "DURATION", "how long to wait for its open transactions (60s)"},
    kDryRunFlag,
    kJsonFlag,
};

// What is asked for, looked at before anything is touched.
struct Request {
  explicit Request(const Flags& all)
      : flags(all), jobs(static_cast<int>(all.number("jobs", 4, 1, 64))), timeout(all.seconds("timeout", 60)) {
    if (all.has("to") + all.has("undo") == 0 && !all.has("back"))
      throw Failure{"-to, -back or -undo is missing", kUsage};
    if (all.has("back") && all.has("undo")) throw Failure{"-back and -undo do not go together", kUsage};
    if (all.has("profile") && !all.has("to")) throw Failure{"-profile is for the way there, with -to", kUsage};
    if (all.has("profile")) check_profile(all.get("profile"));
  }
  const Flags& flags;
  int jobs;
  double timeout;
};

// What is said at the end.
struct Outcome {
  std::string sentence;
  JsonObject json;
  std::vector<std::string> warnings{};
};

void lock_move(Connection& cloud, const std::string& org) {
  if (!try_lock_move(cloud, org)) throw Failure{"organization " + org + " is being moved by somebody else"};
}

// The swap waits shortly for its locks and is tried again: others queue behind it meanwhile.
template <class Swap>
void retry_swap(Connection& cloud, Swap&& swap) {
  for (int i = 1;; ++i) {
    try {
      return in_transaction(cloud, swap);
    } catch (const Failure& failure) {
      if ((failure.state != "40P01" && failure.state != "55P03") || i == kSwapTries) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }
}

// What comes after the swap cannot undo the move any more.
template <class Work>
void afterwards(Outcome& outcome, const char* what, Work&& work) {
  try {
    work();
  } catch (const Failure& failure) {
    outcome.warnings.push_back(std::string(what) + ": " + failure.text);
  }
}

// Without a password if the control plane has none.
Login direct_login(const Flags& flags, const std::string& org) {
  try {
    if (flags.has("control-plane") && flags.has("key")) return stored_login(flags, org, "direct");
  } catch (const Failure&) {  // there are none
  }
  return {"customers_app", ""};
}

std::string profile_for(const Flags& flags, const std::string& org) {
  std::string profile = flags.get("profile");
  bool has_direct = flags.has("proxy-config") && has_direct_role(flags.get("proxy-config"), org);
  has_direct |= !direct_login(flags, org).password.empty();
  if (profile.empty()) return has_direct ? "fdw+direct" : "fdw";
  if (profile != "fdw" && !has_direct)
    throw Failure{"profile " + profile + " needs the direct credentials of organization " + org +
                  ", in the control plane or the proxy's configuration"};
  return profile;
}

// SPEC P5: how often a statement by key waits for the organization's database, on a warm connection.
constexpr char kCost[] =
    "profile fdw: a read or an insert by key waits 5 times for the organization's database, an update or a delete 8 "
    "times, a transaction of two reads 8 times; with fdw+direct once, twice and at most three times (it needs the "
    "direct credentials: org-credentials -kind direct, or -proxy-config)";
constexpr char kCostJson[] =
    R"({"fdw":{"read":5,"insert":5,"update":8,"two_reads":8},"fdw+direct":{"read":1,"insert":2,"update":2,"two_reads":3}})";

void add_cost(Outcome& outcome, const std::string& profile) {
  if (profile != "fdw") return;
  outcome.sentence += std::string("\n") + kCost;
  outcome.json.raw("far_round_trips", kCostJson);
}

JsonObject description(const std::string& org, const char* action, bool dry, const Target& place) {
  JsonObject json;
  json.text("org", org).text("action", action).flag("dry_run", dry);
  return json.text("database", place.name()).text("database_id", place.database_id());
}

// The end of what is said of rows that were copied.
void add_copied(JsonObject& json, Connection& cloud, const std::string& org, const Copier& copier, double paused) {
  json.raw("generation", cloud.value("SELECT generation FROM lokadb.organizations WHERE org = $1", {org}));
  json.raw("rows", copier.rows()).raw("tables", copier.tables_json()).seconds("paused_seconds", paused);
}

Outcome move_out(const Request& request, Connection& cloud, const std::string& org) {
  const Flags& flags = request.flags;
  Connection target(flags.get("to"), "lokadb move-org");
  Login login = stored_login(flags, org, "fdw");
  std::string profile = profile_for(flags, org);
  Target place(cloud, target, org, login, direct_login(flags, org));
  place.check();
  Outcome outcome{"", description(org, "move", flags.has("dry-run"), place)};
  outcome.json.text("profile", profile);
  if (flags.has("dry-run")) {
    Rows size = cloud.query("SELECT n, bytes, pg_size_pretty(bytes) FROM lokadb.move_size($1)", {org});
    outcome.sentence = "dry run: organization " + org + " can be moved to " + place.name() + " (profile " + profile +
                       "): " + size.get(0, 0) + " rows, which will take about " + size.get(0, 2) + " there";
    outcome.json.raw("rows", size.get(0, 0)).raw("bytes", size.get(0, 1));
    add_cost(outcome, profile);
    return outcome;
  }
  place.clear_leftovers();
  cloud.query("SELECT lokadb.move_begin($1, $2, $3)", {org, place.database_id(), place.where()});
  try {
    place.make_tables();
    place.probe_login();
    Pause held(cloud, org, true, request.timeout);
    Copier copier(flags.get("db"), flags.get("to"), org, request.jobs);
    std::string sums = copier.to_organization(cloud, [&] { place.make_constraints(); });
    in_transaction(cloud, [&] {
      cloud.query("SELECT lokadb.make_server($1, $2, $3, $4, $5, $6)",
                  {org, target.host(), target.port(), target.database(), login.user, login.password});
    });
    retry_swap(cloud, [&] {
      cloud.query("SELECT lokadb.pin_move($1, $2, false)", {org, place.database_id()});
      cloud.query("SELECT lokadb.swap_out($1, $2, $3::jsonb)", {org, profile, sums});
    });
    double paused = held.seconds_held();
    outcome.sentence = "organization " + org + ": " + copier.rows() + " rows moved to " + place.name() + ", profile " +
                       profile + ", paused for " + seconds_text(paused);
    afterwards(outcome, "the report is not complete", [&] { add_copied(outcome.json, cloud, org, copier, paused); });
  } catch (const Failure& failure) {
    throw Failure{failure.text + "; " + undo_move(cloud, flags.get("db"), flags.get("to"), org).text, failure.status,
                  failure.state};
  }
  add_cost(outcome, profile);
  afterwards(outcome, "the foreign tables could not be analyzed", [&] { analyze_parts(cloud, org); });
  return outcome;
}

Outcome move_back(const Request& request, Connection& cloud, const std::string& org) {
  const Flags& flags = request.flags;
  Rows where = cloud.query("SELECT connection, server, database_id FROM lokadb.organizations WHERE org = $1", {org});
  if (where.size() == 0 || where.is_null(0, 1)) throw Failure{"organization " + org + " is at home already"};
  std::string to = flags.get("to", where.get(0, 0));
  Connection target(to, "lokadb move-org");
  Target place(cloud, target, org, {}, {});
  place.check_label();
  place.check_columns();
  Outcome outcome{"", description(org, "return", flags.has("dry-run"), place)};
  if (flags.has("dry-run")) {
    outcome.sentence = "dry run: organization " + org + " can come home from " + place.name();
    return outcome;
  }
  Pause held(cloud, org, true, request.timeout);
  try {
    cloud.query("SELECT lokadb.make_staging($1)", {org});
    place.stop_writers();
    Copier copier(flags.get("db"), to, org, request.jobs);
    std::string sums = copier.to_cloud(cloud);
    retry_swap(cloud, [&] {
      cloud.query("SELECT lokadb.pin_move($1, $2, true)", {org, where.get(0, 2)});
      cloud.query("SELECT lokadb.swap_in($1, $2::jsonb)", {org, sums});
    });
    double paused = held.seconds_held();
    outcome.sentence = "organization " + org + ": " + copier.rows() + " rows came home from " + place.name() +
                       ", paused for " + seconds_text(paused);
    afterwards(outcome, "the report is not complete", [&] { add_copied(outcome.json, cloud, org, copier, paused); });
  } catch (const Failure& failure) {
    throw Failure{failure.text + "; " + undo_return(cloud, flags.get("db"), to, org).text, failure.status,
                  failure.state};
  }
  afterwards(outcome, "its label there could not be changed", [&] { place.remove_label(); });
  return outcome;
}

// What was cut off is taken back, there or on the way home.
Outcome take_back(const Request& request, Connection& cloud, const std::string& org) {
  const Flags& flags = request.flags;
  bool dry = flags.has("dry-run");
  Rows now = cloud.query("SELECT server, step, connection FROM lokadb.organizations WHERE org = $1", {org});
  bool is_away = now.size() > 0 && !now.is_null(0, 0), is_cut_off = now.size() > 0 && !now.is_null(0, 1);
  std::string to = flags.get("to", now.size() > 0 ? now.get(0, 2) : "");
  std::string said;
  if (dry || !is_cut_off) {
    said = "organization " + org + " is " + (is_away ? "in its own database" : "at home") + " as before, and " +
           (!is_cut_off ? "no move of it was cut off"
            : is_away   ? "its return would be taken back"
                        : "its move would be taken back");
  } else {
    Undone done = (is_away ? undo_return : undo_move)(cloud, flags.get("db"), to, org);
    if (!done.ok) throw Failure{done.text};
    said = done.text;
  }
  JsonObject json;
  json.text("org", org).text("action", "undo").flag("dry_run", dry).text("result", said);
  return {(dry ? "dry run: " : "") + said, json};
}

int run(const Flags& flags) {
  const Request request(flags);
  Connection cloud(flags.get("db"), "lokadb move-org");
  std::string org = canonical_org(cloud, flags.get("org"));
  lock_move(cloud, org);
  Outcome outcome = flags.has("undo")   ? take_back(request, cloud, org)
                    : flags.has("back") ? move_back(request, cloud, org)
                                        : move_out(request, cloud, org);
  for (const std::string& w : outcome.warnings) std::fprintf(stderr, "lokadb: that is done, but %s\n", w.c_str());
  say(flags, outcome.sentence, outcome.json.raw("warnings", json_array(outcome.warnings, json_text)));
  return 0;
}

}  // namespace

void analyze_parts(Connection& cloud, const std::string& org) {
  Rows parts = cloud.query(
      "SELECT format('%I.%I', lokadb.part_name($1), n.rel) FROM lokadb.tables t, lokadb.name_of(t.tbl) n", {org});
  for (int i = 0; i < parts.size(); ++i) cloud.run("ANALYZE " + parts.get(i, 0));
}

const Command kMoveOrg{"move-org", "Moves an organization to a database of its own, or home", "", kFlags, run};

}  // namespace lokadb::cli
