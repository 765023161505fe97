#include "secret/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/bytes.h"
#include "base/random.h"
#include "secret/hex.h"

namespace lokadb::secret {

namespace {

Error fault(const std::string& path, const std::string& what) {
  return {sqlstate::kReloadFailed, Severity::Error, path + ": " + what, {}};
}

}  // namespace

Result<Done> make_key_file(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return fault(path, std::strerror(errno));
  std::array<std::byte, kKeySize> key;
  random_bytes(key);
  std::string line = to_hex(as_text(key)) + "\n";
  bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  close(fd);
  if (!written) return fault(path, "cannot be written");
  return Done{};
}

Result<std::string> read_key_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return fault(path, std::strerror(errno));
  if ((info.st_mode & 077) != 0) return fault(path, "others may read the key file: chmod 600 it");
  errno = 0;
  std::ifstream in(path);
  if (!in) return fault(path, errno != 0 ? std::strerror(errno) : "cannot be read");
  std::string line;
  std::getline(in, line);
  auto key = from_hex(line);
  if (!key || key->size() != kKeySize) return fault(path, "not a key file of lokadb keygen");
  return std::move(*key);
}

}  // namespace lokadb::secret
