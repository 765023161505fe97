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
};

int pause(const Flags& flags) {
  double seconds = flags.seconds("for", -1), timeout = flags.seconds("timeout", 60);
  Connection db(flags.get("db"), "lokadb pause");
  std::string org = canonical_org(db, flags.get("org"));
  struct sigaction action {};
  action.sa_handler = ask_stop;  // without SA_RESTART: waits end
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  Pause held(db, org, false, timeout);
  std::fprintf(stderr, "organization %s is paused\n", org.c_str());
  if (!flags.rest().empty()) return run_command(flags.rest());
  hold(db, seconds);
  return 0;
}

constexpr FlagSpec kResumeFlags[] = {kDbFlag, {"org", "N", "the organization", true}};

int resume(const Flags& flags) {
  Connection db(flags.get("db"), "lokadb resume");
  std::string org = canonical_org(db, flags.get("org"));
  Rows holders = db.query(
      "SELECT pid, who, since::timestamptz(0) FROM lokadb.holders($1) WHERE mode = 'ExclusiveLock' AND granted", {org});
  if (holders.size() == 0) throw Failure{"organization " + org + " is not paused"};
  for (int i = 0; i < holders.size(); ++i) {
    std::printf("ending the pause held by %s, process %s\n", holders.get(i, 1).c_str(), holders.get(i, 0).c_str());
    if (db.value("SELECT pg_terminate_backend($1::int, 5000)", {holders.get(i, 0)}) != "t")
      throw Failure{"process " + holders.get(i, 0) + " did not end"};
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
};

int org_profile(const Flags& flags) {
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
  if (flags.has("dry-run")) {
    std::printf("dry run: organization %s would go from %s to %s\n", org.c_str(), now.get(0, 0).c_str(),
                profile.c_str());
    return 0;
  }
  Pause held(db, org, false, flags.seconds("timeout", 60));
  in_transaction(db, [&] {
    if (login) db.query("SELECT lokadb.make_mapping($1, $2, $3)", {now.get(0, 1), login->user, login->password});
    if (drops && has_mapping) db.run("DROP USER MAPPING FOR PUBLIC SERVER " + db.quoted(now.get(0, 1)));
    // It may have come home while the pause was waited for.
    if (db.query(
              "UPDATE lokadb.organizations SET profile = $2, generation = DEFAULT, changed_at = now() WHERE org = $1 "
              "AND server IS NOT NULL RETURNING 1",
              {org, profile})
            .size() == 0)
      throw Failure{"organization " + org + " has come home meanwhile: nothing was changed"};
    db.query("SELECT pg_notify('lokadb', jsonb_build_object('org', $1::text, 'event', 'changed')::text)", {org});
  });
  std::printf("organization %s: %s (was %s), paused for %.2f s\n", org.c_str(), profile.c_str(), now.get(0, 0).c_str(),
              held.seconds_held());
  return 0;
}

}  // namespace

const Command kPause{"pause", "Holds an organization's new transactions back", "[-- COMMAND]", kPauseFlags, pause};
const Command kResume{"resume", "Ends a pause that somebody else holds", "", kResumeFlags, resume};
const Command kOrgProfile{"org-profile", "Changes how a moved organization is reached", "PROFILE", kProfileFlags,
                          org_profile};

}  // namespace lokadb::cli
