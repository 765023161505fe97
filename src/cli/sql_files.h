// The files of sql/, built into the program (script/embed-sql), sorted by name.
#pragma once

#include <span>
#include <string_view>

namespace lokadb::cli {

struct SqlFile {
  std::string_view name;  // cloud/schema/0001_core.sql
  std::string_view text;
};
std::span<const SqlFile> sql_files();

}  // namespace lokadb::cli
