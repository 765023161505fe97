#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lokadb {

std::atomic<int> g_log_verbosity{0};

namespace {

constexpr std::size_t kMaxMessage = 2048;

struct LevelSpec {
  const char* name;
  int syslog_priority;
  const char* journal_prefix;
};
constexpr LevelSpec kLevels[] = {
    {"FATAL", LOG_CRIT, "<2>"}, {"ERROR", LOG_ERR, "<3>"},   {"WARNING", LOG_WARNING, "<4>"},
    {"LOG", LOG_INFO, "<6>"},   {"DEBUG", LOG_DEBUG, "<7>"}, {"NOISE", LOG_DEBUG, "<7>"},
};

struct Facility {
  const char* name;
  int value;
};
constexpr Facility kFacilities[] = {
    {"auth", LOG_AUTH},     {"authpriv", LOG_AUTHPRIV}, {"daemon", LOG_DAEMON}, {"user", LOG_USER},
    {"local0", LOG_LOCAL0}, {"local1", LOG_LOCAL1},     {"local2", LOG_LOCAL2}, {"local3", LOG_LOCAL3},
    {"local4", LOG_LOCAL4}, {"local5", LOG_LOCAL5},     {"local6", LOG_LOCAL6}, {"local7", LOG_LOCAL7},
};

constexpr std::size_t kMostEarlyLines = 1000;

struct EarlyLine {
  LogLevel level;
  std::string prefix, line;
};

struct Sink {
  std::mutex mutex;
  LogTargets targets;
  int file_fd = -1;
  bool syslog_open = false;
  bool journal = false;  // standard error goes to the systemd journal: its prefix, no time
  bool is_configured = false;
  std::vector<EarlyLine> early;  // said before anybody knew of a log file
};
Sink& sink() {
  static Sink* s = new Sink;  // never destroyed: other threads may log while the process exits
  return *s;
}

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  if (stream == nullptr) return false;
  unsigned long long device = 0, inode = 0;
  struct stat st;
  return std::sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
         st.st_dev == device && st.st_ino == inode;
}

int facility_of(const std::string& name) {
  for (const auto& f : kFacilities)
    if (name == f.name) return f.value;
  return LOG_DAEMON;
}

std::size_t time_prefix(char* out, std::size_t size) {
  timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  tm parts;
  localtime_r(&ts.tv_sec, &parts);
  char date[32], zone[16];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
  std::strftime(zone, sizeof zone, "%Z", &parts);
  int n = std::snprintf(out, size, "%s.%03ld %s [%d] ", date, ts.tv_nsec / 1000000, zone, static_cast<int>(getpid()));
  return static_cast<std::size_t>(std::max(n, 0));
}

void write_all(int fd, const char* prefix, std::size_t prefix_size, std::string_view line) {
  iovec parts[2] = {{const_cast<char*>(prefix), prefix_size}, {const_cast<char*>(line.data()), line.size()}};
  [[maybe_unused]] auto n = writev(fd, parts, 2);  // a full disk must not stop the pooler
}

void emit(LogLevel level, const char* format, va_list args) {
  const LevelSpec& spec = kLevels[static_cast<int>(level)];
  char message[kMaxMessage];
  std::vsnprintf(message, sizeof message, format, args);
  std::string line = spec.name;
  line += ' ';
  for (const char* p = message; *p != '\0'; ++p) {
    line += *p;
    if (*p == '\n') line += '\t';
  }
  line += '\n';

  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  char prefix[96];
  std::size_t prefix_size = time_prefix(prefix, sizeof prefix);
  if (s.file_fd >= 0) write_all(s.file_fd, prefix, prefix_size, line);
  if (s.targets.to_stderr) {
    if (s.journal)
      write_all(STDERR_FILENO, spec.journal_prefix, 3, line);
    else
      write_all(STDERR_FILENO, prefix, prefix_size, line);
  }
  if (s.syslog_open && level <= LogLevel::Log) syslog(spec.syslog_priority, "%s", message);
  if (!s.is_configured && s.early.size() < kMostEarlyLines)
    s.early.push_back({level, std::string(prefix, prefix_size), std::move(line)});
}

// What was said about the configuration file while it was read belongs into the log that it names.
void write_early_lines(Sink& s) {
  for (const EarlyLine& e : s.early) {
    if (s.file_fd >= 0) write_all(s.file_fd, e.prefix.data(), e.prefix.size(), e.line);
    if (s.syslog_open && e.level <= LogLevel::Log)
      syslog(kLevels[static_cast<int>(e.level)].syslog_priority, "%s", e.line.c_str());
  }
  s.early.clear();
  s.is_configured = true;
}

}  // namespace

std::string log_configure(const LogTargets& targets) {
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  int fd = -1;
  if (!targets.file.empty()) {
    fd = open(targets.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return "Cannot open logfile: '" + targets.file + "': " + std::strerror(errno);
  }
  if (s.file_fd >= 0) close(s.file_fd);
  s.file_fd = fd;
  if (s.syslog_open) closelog();
  s.targets = targets;
  s.syslog_open = targets.to_syslog;
  // openlog keeps the pointer, so it gets our own long-lived copy.
  if (s.syslog_open) openlog(s.targets.syslog_ident.c_str(), LOG_PID, facility_of(targets.syslog_facility));
  s.journal = stderr_is_journal();
  if (!s.is_configured) write_early_lines(s);
  return {};
}

void log_set_verbosity(int verbose) { g_log_verbosity.store(std::clamp(verbose, 0, 2), std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) {
  if (!log_enabled(level)) return;
  va_list args;
  va_start(args, format);
  emit(level, format, args);
  va_end(args);
}

void log_fatal(const char* format, ...) {
  va_list args;
  va_start(args, format);
  emit(LogLevel::Fatal, format, args);
  va_end(args);
  std::exit(1);
}

}  // namespace lokadb
