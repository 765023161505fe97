// The process as the operating system sees it: user, pidfile, background, descriptor limit.
#pragma once

#include <string>

namespace lokadb {

// Switches to the user (groups, gid, uid). Ends the process on failure.
void become_user(const std::string& name);

// Into the background: a second child without a terminal; the parents exit with 0.
void daemonize();

// Raises the soft limit of descriptors to the hard one, as far as `wanted` asks for it, and returns (soft, hard).
struct DescriptorLimit {
  unsigned long soft = 0;
  unsigned long hard = 0;
};
DescriptorLimit raise_descriptor_limit(unsigned long wanted);

// Removed when destroyed, if this process wrote it.
class Pidfile {
 public:
  ~Pidfile();
  // Ends the process if another one lives under the file's number. Removes a stale file.
  static void check(const std::string& path);
  void write(const std::string& path);

 private:
  std::string path_;
  int pid_ = 0;
};

}  // namespace lokadb
