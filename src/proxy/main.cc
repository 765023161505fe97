// lokadb-proxy: starts and stops, nothing else.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "config/config.h"
#include "net/helper_threads.h"
#include "proxy/command_line.h"
#include "proxy/process.h"
#include "proxy/proxy.h"
#include "proxy/service_manager.h"

int main(int argc, char** argv) {
  using namespace lokadb;
  CommandLine command_line = parse_command_line(argc, argv);
  log_set_verbosity(command_line.verbose);

  auto loaded = load_config(command_line.config_file, nullptr);
  if (!loaded) log_fatal("cannot load config file");
  ConfigPtr config = *loaded;
  if (command_line.verbose > 0) {
    if (auto set = config_with_option(config, "verbose", std::to_string(command_line.verbose))) config = *set;
  }
  if (auto failed = Proxy::configure_log(config->options, command_line.quiet); !failed.empty())
    log_fatal("%s", failed.c_str());
  std::vector<int> passed_sockets = take_passed_sockets();
  if (command_line.reboot && !passed_sockets.empty()) log_fatal("cannot reboot under service manager");

  if (command_line.user)
    become_user(*command_line.user);
  else if (config->options.user)
    become_user(*config->options.user);
  if (geteuid() == 0) log_fatal("%s should not run as root", command_line.program_name());
  const std::string& pidfile = config->options.pidfile;
  std::unique_ptr<Takeover> takeover = command_line.reboot ? Takeover::begin(config->options) : nullptr;
  if (!pidfile.empty() && !takeover) Pidfile::check(pidfile);
  if (command_line.daemon) {
    if (pidfile.empty()) log_fatal("daemon needs pidfile configured");
    daemonize();
    command_line.quiet = true;
    Proxy::configure_log(config->options, true);
  }
  int status = 0;
  {
    Proxy proxy(config, command_line);
    status = proxy.run(passed_sockets, std::move(takeover));
  }
  // A module of PAM that hangs must not hold the end.
  if (HelperThreads::left_behind() > 0) _exit(status);
  return status;
}
