// What the tests of the configuration share: files held in memory, a folder of their own, the log as text.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/log.h"
#include "config/parse.h"

namespace lokadb::test {

// An IniSource of named texts.
inline IniSource texts(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& path, std::string& why) -> std::optional<std::string> {
    auto it = files.find(path);
    if (it != files.end()) return it->second;
    why = "No such file or directory";
    return std::nullopt;
  };
}

// Parses `text` as the file "x.ini"; the faults joined by newlines if it was refused.
struct Parsed {
  std::optional<Config> config;
  std::string faults;
};
inline Parsed parse(const std::string& text, const Config* previous = nullptr,
                    std::map<std::string, std::string> others = {}) {
  others["x.ini"] = text;
  Faults faults;
  Parsed result{parse_config("x.ini", texts(std::move(others)), previous, faults), {}};
  for (const auto& fault : faults) result.faults.append(result.faults.empty() ? "" : "\n").append(fault);
  return result;
}

// A folder that lives as long as the object, with a log file in it that takes all log lines meanwhile.
class Sandbox {
 public:
  Sandbox() {
    std::string name = (std::filesystem::temp_directory_path() / "config-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    LogTargets targets;
    targets.to_stderr = false;
    targets.file = path("log");
    log_configure(targets);
  }
  ~Sandbox() {
    log_configure({});
    std::filesystem::remove_all(folder_);
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string log() const {
    std::ifstream file(path("log"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool logged(const std::string& text) const { return log().find(text) != std::string::npos; }

 private:
  std::filesystem::path folder_;
};

}  // namespace lokadb::test
