// Part of the build: copies standard input to standard output and puts the option table in.
//   fill_page man < PAGE.in > PAGE      fill_page ini < SAMPLE.in > SAMPLE
// A line "@OPTIONS@" becomes the options, as text of a manual page or as a section of a configuration file; @VERSION@
// becomes the version. Exit status 1 if nothing could be written.
#include <iostream>
#include <string>

#include "build_config.h"
#include "config/option_pages.h"

int main(int argc, char** argv) {
  std::string form = argc == 2 ? argv[1] : "";
  if (form != "man" && form != "ini") {
    std::cerr << "usage: fill_page man|ini < IN > OUT\n";
    return 1;
  }
  constexpr std::string_view kVersion = "@VERSION@";
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "@OPTIONS@") {
      std::cout << (form == "man" ? lokadb::options_as_man_text() : lokadb::options_as_ini_text());
      continue;
    }
    if (auto at = line.find(kVersion); at != std::string::npos) line.replace(at, kVersion.size(), PACKAGE_VERSION);
    std::cout << line << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}
