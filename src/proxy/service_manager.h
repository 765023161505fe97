// The service manager (systemd) the proxy may run under: sockets it passes and what it wants to be told. Without one,
// all of this does nothing. Built without libsystemd, it only warns that there is one. Main thread.
#pragma once

#include <string>
#include <vector>

namespace lokadb {

// The listening sockets passed to this process, close-on-exec. Call once, before daemonize(): they are meant for the
// process id the program was started with. Ends the process if what was passed cannot be understood.
std::vector<int> take_passed_sockets();

// Ready to serve, at first or again after a reload. Also says which process that is (daemonize() changes it).
void tell_ready();
void tell_reloading();
void tell_stopping();
// A line for `systemctl status`.
void tell_status(const std::string& line);

}  // namespace lokadb
