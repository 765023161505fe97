#include "proxy/service_manager.h"

#include "build_config.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

namespace lokadb {

#ifdef HAVE_SYSTEMD

std::vector<int> take_passed_sockets() {
  constexpr int kUnsetEnvironment = 1;
  int count = sd_listen_fds(kUnsetEnvironment);
  if (count < 0) log_fatal("sockets passed from service manager cannot be taken: %s", std::strerror(-count));
  std::vector<int> sockets;
  for (int i = 0; i < count; ++i) sockets.push_back(SD_LISTEN_FDS_START + i);
  return sockets;
}

static void tell(const std::string& text) {
  if (int r = sd_notify(0, text.c_str()); r < 0)
    log_line(LogLevel::Warning, "service manager cannot be told: %s", std::strerror(-r));
}

#else

std::vector<int> take_passed_sockets() {
  if (std::getenv("NOTIFY_SOCKET") != nullptr) {
    log_line(LogLevel::Warning,
             "apparently running under systemd with notify socket, but systemd support was not built");
  }
  const char* pid = std::getenv("LISTEN_PID");
  if (pid != nullptr && std::atoi(pid) == getpid())
    log_fatal("sockets were passed from a service manager, but systemd support was not built");
  return {};
}

static void tell(const std::string&) {}

#endif

void tell_ready() { tell(format("READY=1\nMAINPID=%d", static_cast<int>(getpid()))); }

void tell_reloading() { tell(format("RELOADING=1\nMONOTONIC_USEC=%lld", static_cast<long long>(now_us()))); }

void tell_stopping() { tell("STOPPING=1"); }

void tell_status(const std::string& line) { tell("STATUS=" + line); }

}  // namespace lokadb
