// What was found out about a statement's text under one catalog and search_path, kept for the next time. Bounded in
// bytes. Any thread.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catalogs.h"
#include "route/analysis.h"
#include "route/literals.h"
#include "sql/statement.h"
#include "sql/template_key.h"

namespace lokadb::router {

// Of one text: an analysis for each of its statements.
struct Text {
  sql::Parsed parsed;
  std::vector<route::Analysis> analyses;
  CatalogPtr catalog;
  std::string search_path;
  std::string fingerprint;  // 16 hexadecimal digits
};
using TextPtr = std::shared_ptr<const Text>;

class Analyses {
 public:
  // Never null. `lifted` has the literals of the text afterwards.
  TextPtr get(std::string_view text, bool has_standard_strings, const CatalogPtr& catalog,
              const std::string& search_path, std::string_view role, sql::Lifted& lifted);

 private:
  struct Entry {
    std::string key;
    TextPtr text;
    std::size_t bytes;
  };
  struct Shard {
    std::mutex mutex;
    std::list<Entry> order;  // least recently used first
    std::unordered_map<std::string_view, std::list<Entry>::iterator> places;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kShards = 16;

  TextPtr find(Shard& shard, std::string_view key, const CatalogPtr& catalog, const std::string& search_path);
  void keep(Shard& shard, std::string key, TextPtr text);

  std::array<Shard, kShards> shards_;
  static constexpr std::size_t kShardLimit = (32u << 20) / kShards;  // bytes
};

}  // namespace lokadb::router
