// lokadb keygen, lokadb org-credentials.
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/credentials.h"

namespace lokadb::cli {

namespace {

constexpr FlagSpec kKeygenFlags[] = {{"key", "FILE", "the key file to make; it must not be there yet", true},
                                     kJsonFlag};

int keygen(const Flags& flags) {
  make_key_file(flags.get("key"));
  const std::string file = flags.get("key");
  say(flags, file + ": made; whoever has it and the control plane can read all passwords",
      JsonObject().text("key", file));
  return 0;
}

// From a terminal without echo, else the first line of standard input.
std::string ask_password() {
  termios before{};
  bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
  if (terminal) {
    termios silent = before;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    std::fputs("Password: ", stderr);
  }
  std::string line;
  std::getline(std::cin, line);
  if (terminal) {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    std::fputs("\n", stderr);
  }
  return line;
}

std::string read_password(const Flags& flags) {
  std::string password;
  if (flags.has("password-file")) {
    std::ifstream in(flags.get("password-file"));
    if (!in) throw Failure{flags.get("password-file") + ": cannot be read"};
    std::getline(in, password);
  } else {
    password = ask_password();
  }
  if (password.empty()) throw Failure{"the password is empty"};
  return password;
}

// By logging in with them.
void verify(const std::string& target, const Login& login) {
  const char* keys[] = {"dbname", "user", "password", nullptr};
  const char* values[] = {target.c_str(), login.user.c_str(), login.password.c_str(), nullptr};
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdbParams(keys, values, 1), PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw Failure{std::string("these credentials do not work: ") + PQerrorMessage(connection.get())};
}

constexpr FlagSpec kFlags[] = {
    {"control-plane", "CP", "connection string of the control plane", true},
    {"key", "FILE", "its key file"},
    {"org", "N", "the organization"},
    {"kind", "KIND", "fdw (the cloud's foreign server) or direct (the proxy)"},
    {"user", "R", "stores this role ..."},
    {"password-file", "FILE", "... with the password in the first line of this file; else it is asked for"},
    {"verify", "ORGDB", "logs in to this database with the credentials before they are stored, or with those stored"},
    {"rotate", "NEWKEY", "encrypts all credentials anew with this key file"},
    {"show", "", "lists what is stored, without passwords"},
    kJsonFlag,
};

int rotate(Connection& control, const std::string& key, const std::string& new_key) {
  Rows all = control.query("SELECT org, kind FROM lokadb.credentials ORDER BY 1, 2 FOR UPDATE");
  for (int i = 0; i < all.size(); ++i)
    store_login(control, new_key, all.get(i, 0), all.get(i, 1), load_login(control, key, all.get(i, 0), all.get(i, 1)));
  return all.size();
}

int show(Connection& control, bool json) {
  Rows all =
      control.query("SELECT org, kind, user_name, changed_at::timestamptz(0) FROM lokadb.credentials ORDER BY 1, 2");
  if (json) {
    std::printf("%s\n",
                control
                    .value("SELECT coalesce(jsonb_agg(jsonb_build_object('org', org, 'kind', kind, 'user', user_name, "
                           "'changed_at', changed_at) ORDER BY org, kind), '[]') FROM lokadb.credentials")
                    .c_str());
    return 0;
  }
  for (int i = 0; i < all.size(); ++i)
    std::printf("organization %s, %s: role %s, changed %s\n", all.get(i, 0).c_str(), all.get(i, 1).c_str(),
                all.get(i, 2).c_str(), all.get(i, 3).c_str());
  return 0;
}

int run(const Flags& flags) {
  Connection control(flags.get("control-plane"), "lokadb org-credentials");
  check_control_plane(control);
  if (flags.has("show")) return show(control, flags.has("json"));
  if (!flags.has("key")) throw Failure{"-key is missing", kUsage};
  std::string key = read_key_file(flags.get("key"));
  if (flags.has("rotate")) {
    std::string new_key = read_key_file(flags.get("rotate"));
    int count = 0;
    in_transaction(control, [&] { count = rotate(control, key, new_key); });
    say(flags, std::to_string(count) + " credentials encrypted anew",
        JsonObject().raw("rotated", std::to_string(count)));
    return 0;
  }
  std::string org = flags.get("org"), kind = flags.get("kind");
  if (org.empty() || (kind != "fdw" && kind != "direct")) throw Failure{"-org and -kind fdw|direct are needed", kUsage};
  if (!flags.has("user")) {
    if (!flags.has("verify")) throw Failure{"-user is missing", kUsage};
    verify(flags.get("verify"), load_login(control, key, org, kind));
    say(flags, "the " + kind + " credentials of organization " + org + " work",
        JsonObject().text("org", org).text("kind", kind).flag("stored", false).flag("verified", true));
    return 0;
  }
  Login login{flags.get("user"), read_password(flags)};
  if (flags.has("verify")) verify(flags.get("verify"), login);
  store_login(control, key, org, kind, login);
  JsonObject json;
  json.text("org", org).text("kind", kind).flag("stored", true).flag("verified", flags.has("verify"));
  say(flags, "stored the " + kind + " credentials of organization " + org + ": role " + login.user,
      json.text("user", login.user));
  return 0;
}

}  // namespace

const Command kKeygen{"keygen", "Makes a key file for the control plane", "", kKeygenFlags, keygen};
const Command kOrgCredentials{"org-credentials", "Stores logins for organizations' databases in the control plane", "",
                              kFlags, run};

}  // namespace lokadb::cli
