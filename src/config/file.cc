#include "config/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace lokadb {

std::optional<std::string> read_file(const std::string& path, std::string& why) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (!file) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  std::string text;
  char part[16384];
  while (std::size_t n = std::fread(part, 1, sizeof part, file.get())) text.append(part, n);
  if (std::ferror(file.get())) {  // a folder opens well and fails here
    why = std::strerror(errno);
    return std::nullopt;
  }
  return text;
}

}  // namespace lokadb
