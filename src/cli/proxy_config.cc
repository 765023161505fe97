#include "cli/proxy_config.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/failure.h"
#include "config/ini_reader.h"

namespace lokadb::cli {

namespace {

class DirectRole final : public IniHandler {
 public:
  explicit DirectRole(std::string org) : org_(std::move(org)) {}
  bool section(std::string_view name, Faults&) override {
    inside_ = name == "customers_app";
    return true;
  }
  bool value(std::string_view key, std::string_view value, Faults&) override {
    if (!inside_ || value.empty()) return true;
    has_user_ |= key == "user";
    has_password_ |= key == "password";
    has_line_ |= key == org_;
    return true;
  }
  bool found() const { return has_line_ || (has_user_ && has_password_); }

 private:
  std::string org_;
  bool inside_ = false, has_user_ = false, has_password_ = false, has_line_ = false;
};

std::optional<std::string> read_file(const std::string& path, std::string& why) {
  std::ifstream in(path);
  if (!in) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

bool has_direct_role(const std::string& path, const std::string& org) {
  DirectRole handler(org);
  Faults faults;
  if (!read_ini(path, read_file, handler, faults))
    throw Failure{faults.empty() ? path + ": cannot be read" : faults.front()};
  return handler.found();
}

}  // namespace lokadb::cli
