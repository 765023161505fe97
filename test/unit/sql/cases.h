// The statements of test/unit/sql/cases: paragraphs of a statement and its facts, as dump() prints them, each indented
// by two. Lines with # are for people.
#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lokadb::sql {

struct Case {
  std::string file;
  int line = 0;
  std::string text;
  std::string facts;
};

inline std::vector<Case> read_cases(const std::filesystem::path& file) {
  std::vector<Case> cases;
  std::ifstream in(file);
  std::string line;
  bool is_open = false;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      is_open = false;
    } else if (line.starts_with("  ") && is_open) {
      cases.back().facts += line.substr(2) + "\n";
    } else if (is_open) {
      cases.back().text += "\n" + line;
    } else {
      cases.push_back({file.filename(), number, line, {}});
      is_open = true;
    }
  }
  return cases;
}

inline const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(LOKADB_UNIT_FOLDER "/sql/cases"))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files)
      for (Case& one : read_cases(file)) all.push_back(std::move(one));
    return all;
  }();
  return cases;
}

}  // namespace lokadb::sql
