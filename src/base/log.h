// The log: one line an event, to standard error, a file and syslog, in PgBouncer's format
//   YYYY-MM-DD HH:MM:SS.mmm TZ [PID] LEVEL message
// Lines are written whole and unbuffered, from any thread.
#pragma once

#include <atomic>
#include <string>

namespace lokadb {

enum class LogLevel { Fatal, Error, Warning, Log, Debug, Noise };

struct LogTargets {
  bool to_stderr = true;
  std::string file;        // empty: none; opened in append mode
  bool to_syslog = false;  // LOG and above only
  std::string syslog_ident = "pgbouncer";
  std::string syslog_facility = "daemon";
};

// Replaces the targets; the file is opened anew even if its name is unchanged (log rotation).
// Returns an empty string, or the text of what failed (targets stay as they were). Main thread.
std::string log_configure(const LogTargets& targets);

// 0: up to LOG, 1: DEBUG too, 2 and more: NOISE too. Any thread.
void log_set_verbosity(int verbose);

extern std::atomic<int> g_log_verbosity;

inline bool log_enabled(LogLevel level) {
  return static_cast<int>(level) <= static_cast<int>(LogLevel::Log) + g_log_verbosity.load(std::memory_order_relaxed);
}

// printf-style; a newline in the message becomes "\n\t", messages are cut at about 2 kB. Never throws.
void log_line(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Logs FATAL and ends the process with exit status 1.
[[noreturn]] void log_fatal(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace lokadb
