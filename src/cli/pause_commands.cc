// lokadb pause, lokadb resume, lokadb org-profile.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "cli/command.h"
#include "cli/credentials.h"
#include "cli/organization.h"
#include "cli/pause.h"

namespace lokadb::cli {

namespace {

volatile std::sig_atomic_t stop_asked = 0;
void ask_stop(int) { stop_asked = 1; }

// The command's exit status, as a shell gives it.
int run_command(const std::vector<std::string>& words) {
  pid_t child = fork();
  if (child < 0) throw Failure{"fork failed"};
  if (child == 0) {
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    std::fprintf(stderr, "lokadb: %s cannot be run\n", argv[0]);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) kill(child, SIGTERM);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Until the time is over (below 0: never) or a signal comes; a lost session, which has ended the pause, is an error.
void hold(Connection& db, double seconds) {
  using std::chrono::steady_clock;
  auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
  while (stop_asked == 0 && (seconds < 0 || steady_clock::now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    db.query("SELECT 1");
  }
}

constexpr FlagSpec kPauseFlags[] = {
    kDbFlag,
    {"org", "N", "the organization", true},
    {"for", "DURATION", "how long, as 90, 5m or 1h; else until a signal, or until COMMAND ends"},
    {"timeout", "DURATION", "how long to wait for its open transactions (60s)"},
    kJsonFlag,
};

int pause(const Flags& flags) {
  double seconds = flags.seconds("for", -1), timeout = flags.seconds("timeout", 60);
  if (seconds == 0) throw Failure{"-for needs a duration of more than 0", kUsage};
  Connection db(flags.get("db"), "lokadb pause");
  std::string org = canonical_org(db, flags.get("org"));
  struct sigaction action {};
  action.sa_handler = ask_stop;  // without SA_RESTART: waits end
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  Pause held(db, org, false, timeout);
  std::fprintf(stderr, "organization %s is paused\n", org.c_str());
  auto tell = [&](const char* event) {
    JsonObject json;
    json.text("org", org).text("event", event).seconds("paused_seconds", held.seconds_held());
    if (flags.has("json")) say(flags, "", json);
  };
  tell("paused");
  int status = 0;
  if (!flags.rest().empty())
    status = run_command(flags.rest());
  else
    hold(db, seconds);
  tell("resumed");
  return status;
}

constexpr FlagSpec kResumeFlags[] = {kDbFlag, {"org", "N", "the organization", true}, kJsonFlag};

int resume(const Flags& flags) {
  Connection db(flags.get("db"), "lokadb resume");
  std::string org = canonical_org(db, flags.get("org"));
  Rows holders = db.query(
      "SELECT pid, who, since::timestamptz(0) FROM lokadb.holders($1) WHERE mode = 'ExclusiveLock' AND granted AND pid "
      "IS NOT NULL",
      {org});
  if (holders.size() == 0) throw Failure{"organization " + org + " is not paused"};
  for (int i = 0; i < holders.size(); ++i) {
    const std::string pid = holders.get(i, 0), who = holders.get(i, 1);
    say(flags, "ending the pause held by " + who + ", process " + pid,
        JsonObject().text("org", org).text("held_by", who).raw("pid", pid).text("since", holders.get(i, 2)));
    if (db.value("SELECT pg_terminate_backend($1::int, 5000)", {pid}) != "t")
      throw Failure{"process " + pid + " did not end"};
  }
  return 0;
}

constexpr FlagSpec kProfileFlags[] = {
    kDbFlag,
    {"org", "N", "the organization", true},
    {"control-plane", "CP", "connection string of the control plane"},
    {"key", "FILE", "key file of the control plane"},
    {"drop-fdw-credentials", "", "takes the cloud's own access to the organization away (profile direct)"},
    {"timeout", "DURATION", "how long to wait for its open transactions (60s)"},
    kDryRunFlag,
    kJsonFlag,
};

int org_profile(const Flags& flags) {
  double timeout = flags.seconds("timeout", 60);
  if (flags.rest().size() != 1) throw Failure{"one profile is needed: fdw, fdw+direct or direct", kUsage};
  std::string profile = flags.rest()[0];
  check_profile(profile);
  bool drops = flags.has("drop-fdw-credentials");
  if (drops && profile != "direct") throw Failure{"-drop-fdw-credentials is for profile direct", kUsage};
  Connection db(flags.get("db"), "lokadb org-profile");
  std::string org = canonical_org(db, flags.get("org"));
  Rows now = db.query(
      "SELECT o.profile, o.server, o.step, EXISTS (SELECT FROM pg_user_mappings m WHERE m.srvname = o.server) FROM "
      "lokadb.organizations o WHERE org = $1",
      {org});
  if (now.size() == 0 || now.is_null(0, 1))
    throw Failure{"organization " + org + " has no database of its own: move it first"};
  bool has_mapping = now.get(0, 3) == "t";
  std::optional<Login> login;
  if (!has_mapping && profile != "direct") login = stored_login(flags, org, "fdw");
  if (profile == "direct") {
    stored_login(flags, org, "direct");
    if (drops) stored_login(flags, org, "fdw");  // or there would be no way back
  }
  const std::string was = now.get(0, 0);
  JsonObject json;
  json.text("org", org).flag("dry_run", flags.has("dry-run")).text("profile", profile).text("was", was);
  if (flags.has("dry-run")) {
    say(flags, "dry run: organization " + org + " would go from " + was + " to " + profile, json);
    return 0;
  }
  Pause held(db, org, false, timeout);
  in_transaction(db, [&] {
    // It may have come home while the pause was waited for.
    if (db.value("SELECT 1 FROM lokadb.organizations WHERE org = $1 AND server IS NOT NULL FOR UPDATE", {org}).empty())
      throw Failure{"organization " + org + " has come home meanwhile: nothing was changed"};
    if (login) db.query("SELECT lokadb.make_mapping($1, $2, $3)", {now.get(0, 1), login->user, login->password});
    if (drops && has_mapping) db.run("DROP USER MAPPING FOR PUBLIC SERVER " + db.quoted(now.get(0, 1)));
    db.query("SELECT lokadb.set_profile($1, $2)", {org, profile});
  });
  double paused = held.seconds_held();
  say(flags, "organization " + org + ": " + profile + " (was " + was + "), paused for " + seconds_text(paused),
      json.seconds("paused_seconds", paused));
  return 0;
}

}  // namespace

const Command kPause{"pause", "Holds an organization's new transactions back", "[-- COMMAND]", kPauseFlags, pause};
const Command kResume{"resume", "Ends a pause that somebody else holds", "", kResumeFlags, resume};
const Command kOrgProfile{"org-profile", "Changes how a moved organization is reached", "PROFILE", kProfileFlags,
                          org_profile};

}  // namespace lokadb::cli
