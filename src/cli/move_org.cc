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
    {"jobs", "N", "tables copied at a time (4)"},
    {"timeout", "DURATION", "how long to wait for its open transactions (60s)"},
    kDryRunFlag,
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
void afterwards(const char* what, Work&& work) {
  try {
    work();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "lokadb: that is done, but %s: %s\n", what, failure.text.c_str());
  }
}

int jobs_of(const Flags& flags) { return std::max(1, std::atoi(flags.get("jobs", "4").c_str())); }

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
  if (!profile.empty()) check_profile(profile);
  bool has_direct = flags.has("proxy-config") && has_direct_role(flags.get("proxy-config"), org);
  has_direct |= !direct_login(flags, org).password.empty();
  if (profile.empty()) return has_direct ? "fdw+direct" : "fdw";
  if (profile != "fdw" && !has_direct)
    throw Failure{"profile " + profile + " needs the direct credentials of organization " + org +
                  ", in the control plane or the proxy's configuration"};
  return profile;
}

void move_out(const Flags& flags, Connection& cloud, const std::string& org) {
  if (!flags.has("to")) throw Failure{"-to is missing", kUsage};
  Connection target(flags.get("to"), "lokadb move-org");
  Login login = stored_login(flags, org, "fdw");
  std::string profile = profile_for(flags, org);
  Target place(cloud, target, org, login, direct_login(flags, org));
  place.check();
  if (flags.has("dry-run")) {
    std::printf("dry run: organization %s can be moved to %s (profile %s)\n", org.c_str(), place.name().c_str(),
                profile.c_str());
    return;
  }
  place.clear_leftovers();
  cloud.query("SELECT lokadb.move_begin($1, $2, $3)", {org, place.database_id(), place.where()});
  try {
    place.make_tables();
    place.probe_login();
    Pause held(cloud, org, true, flags.seconds("timeout", 60));
    Copier copier(flags.get("db"), flags.get("to"), org, jobs_of(flags));
    std::string sums = copier.to_organization(cloud, [&] { place.make_constraints(); });
    in_transaction(cloud, [&] {
      cloud.query("SELECT lokadb.make_server($1, $2, $3, $4, $5, $6)",
                  {org, target.host(), target.port(), target.database(), login.user, login.password});
    });
    retry_swap(cloud, [&] {
      cloud.query("SELECT lokadb.pin_move($1, $2, false)", {org, place.database_id()});
      cloud.query("SELECT lokadb.swap_out($1, $2, $3::jsonb)", {org, profile, sums});
    });
    std::printf("organization %s: %s rows moved to %s, profile %s, paused for %.2f s\n", org.c_str(),
                copier.rows().c_str(), place.name().c_str(), profile.c_str(), held.seconds_held());
  } catch (const Failure& failure) {
    throw Failure{failure.text + "; " + undo_move(cloud, flags.get("db"), flags.get("to"), org).text, failure.status,
                  failure.state};
  }
  afterwards("the foreign tables could not be analyzed", [&] { analyze_parts(cloud, org); });
}

void move_back(const Flags& flags, Connection& cloud, const std::string& org) {
  Rows where = cloud.query("SELECT connection, server, database_id FROM lokadb.organizations WHERE org = $1", {org});
  if (where.size() == 0 || where.is_null(0, 1)) throw Failure{"organization " + org + " is at home already"};
  std::string to = flags.get("to", where.get(0, 0));
  Connection target(to, "lokadb move-org");
  Target place(cloud, target, org, {}, {});
  place.check_label();
  place.check_columns();
  if (flags.has("dry-run")) {
    std::printf("dry run: organization %s can come home from %s\n", org.c_str(), place.name().c_str());
    return;
  }
  Pause held(cloud, org, true, flags.seconds("timeout", 60));
  try {
    cloud.query("SELECT lokadb.make_staging($1)", {org});
    place.stop_writers();
    Copier copier(flags.get("db"), to, org, jobs_of(flags));
    std::string sums = copier.to_cloud(cloud);
    retry_swap(cloud, [&] {
      cloud.query("SELECT lokadb.pin_move($1, $2, true)", {org, where.get(0, 2)});
      cloud.query("SELECT lokadb.swap_in($1, $2::jsonb)", {org, sums});
    });
    std::printf("organization %s: %s rows came home from %s, paused for %.2f s\n", org.c_str(), copier.rows().c_str(),
                place.name().c_str(), held.seconds_held());
  } catch (const Failure& failure) {
    throw Failure{failure.text + "; " + undo_return(cloud, flags.get("db"), to, org).text, failure.status,
                  failure.state};
  }
  afterwards("its label there could not be changed", [&] { place.remove_label(); });
}

// What was cut off is taken back, there or on the way home.
void take_back(const Flags& flags, Connection& cloud, const std::string& org) {
  Rows now = cloud.query("SELECT server, step, connection FROM lokadb.organizations WHERE org = $1", {org});
  bool is_away = now.size() > 0 && !now.is_null(0, 0), is_cut_off = now.size() > 0 && !now.is_null(0, 1);
  std::string to = flags.get("to", now.size() > 0 ? now.get(0, 2) : "");
  if (flags.has("dry-run") || !is_cut_off) {
    std::printf("%sorganization %s is %s, and %s\n", flags.has("dry-run") ? "dry run: " : "", org.c_str(),
                is_away ? "in its own database as before" : "at home as before",
                !is_cut_off ? "no move of it was cut off"
                : is_away   ? "its return would be taken back"
                            : "its move would be taken back");
    return;
  }
  Undone done = is_away ? undo_return(cloud, flags.get("db"), to, org) : undo_move(cloud, flags.get("db"), to, org);
  if (!done.ok) throw Failure{done.text};
  std::printf("%s\n", done.text.c_str());
}

int run(const Flags& flags) {
  if (flags.has("back") && flags.has("undo")) throw Failure{"-back and -undo do not go together", kUsage};
  Connection cloud(flags.get("db"), "lokadb move-org");
  std::string org = canonical_org(cloud, flags.get("org"));
  lock_move(cloud, org);
  if (flags.has("undo"))
    take_back(flags, cloud, org);
  else
    flags.has("back") ? move_back(flags, cloud, org) : move_out(flags, cloud, org);
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
