// Copies an organization's rows between the cloud and its database, several tables at a time, and proves them equal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/connection.h"

namespace lokadb::cli {

class Copier {
 public:
  Copier(std::string cloud, std::string target, std::string org, int jobs);

  // Both return {"table": "(count,checksum)"} as verified on both sides, as JSON; Failure if they differ. They need the
  // organization paused. after_copy makes keys and indexes in the organization's database.
  std::string to_organization(Connection& cloud, const std::function<void()>& after_copy);
  std::string to_cloud(Connection& cloud);
  // Of what was verified.
  std::string rows() const { return std::to_string(rows_); }
  std::string tables_json() const { return tables_json_; }  // [{"table", "rows", "checksum"}]

 private:
  struct Table {
    std::string name;     // as in the JSON
    std::string columns;  // to be copied
    std::string here;     // in the cloud: what is read or written
    std::string there;    // in the organization's database
    std::string where;    // of what is read in the cloud
    std::string local;    // relation whose columns count
  };
  std::vector<Table> tables(Connection& cloud, bool home) const;
  void copy_all(const std::vector<Table>& tables, bool home, const std::string& snapshot) const;
  void copy_one(Connection& from, Connection& to, const std::string& query, const std::string& into) const;
  std::string verify(Connection& cloud, const std::vector<Table>& tables, bool home, const std::string& snapshot);
  std::string cloud_, target_, org_;
  int jobs_;
  long long rows_ = 0;
  std::string tables_json_ = "[]";
};

}  // namespace lokadb::cli
