#include "proxy/process.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace lokadb {

void become_user(const std::string& name) {
  const passwd* entry = getpwnam(name.c_str());
  if (entry == nullptr) log_fatal("could not find user '%s' to switch to", name.c_str());
  if (geteuid() == entry->pw_uid) return;
  if (initgroups(name.c_str(), entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0)
    log_fatal("failed to assume identity of user '%s': %s", name.c_str(), std::strerror(errno));
}

void daemonize() {
  auto fork_off = [] {
    pid_t pid = fork();
    if (pid < 0) log_fatal("fork failed: %s", std::strerror(errno));
    if (pid > 0) _exit(0);
  };
  fork_off();
  if (setsid() < 0) log_fatal("setsid failed: %s", std::strerror(errno));
  fork_off();
  int null = open("/dev/null", O_RDWR);
  if (null < 0) log_fatal("cannot open /dev/null: %s", std::strerror(errno));
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (null > STDERR_FILENO) close(null);
}

DescriptorLimit raise_descriptor_limit(unsigned long wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return {limit.rlim_cur, limit.rlim_max};
}

void Pidfile::check(const std::string& path) {
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) {
    if (errno == ENOENT) return;
    log_fatal("could not open pidfile '%s': %s", path.c_str(), std::strerror(errno));
  }
  int pid = 0;
  int fields = fscanf(file, "%d", &pid);
  fclose(file);
  if (fields == 1 && pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH))
    log_fatal("pidfile '%s' exists, another instance running?", path.c_str());
  log_line(LogLevel::Log, "stale pidfile, removing");
  if (unlink(path.c_str()) != 0) log_fatal("could not remove pidfile '%s': %s", path.c_str(), std::strerror(errno));
}

void Pidfile::write(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) log_fatal("could not open pidfile '%s': %s", path.c_str(), std::strerror(errno));
  std::string text = std::to_string(getpid()) + "\n";
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    log_fatal("could not write pidfile '%s': %s", path.c_str(), std::strerror(errno));
  close(fd);
  path_ = path;
  pid_ = getpid();
}

Pidfile::~Pidfile() {
  if (!path_.empty() && pid_ == getpid()) unlink(path_.c_str());
}

}  // namespace lokadb
