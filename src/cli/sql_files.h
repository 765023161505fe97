// The files of sql/, built into the program (script/embed-sql), sorted by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lokadb::cli {

struct SqlFile {
  std::string_view name;  // cloud/schema/0001_core.sql
  std::string_view text;
};
std::span<const SqlFile> sql_files();
std::string sql_file(std::string_view name);  // its text; the name must be that of one

}  // namespace lokadb::cli
