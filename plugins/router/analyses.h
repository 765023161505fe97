// What was found out about a statement's text under one catalog and search_path, kept for the next time. Bounded in
// bytes. Any thread. A hit allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "catalogs.h"
#include "route/analysis.h"
#include "route/literals.h"
#include "sql/template_cache.h"

namespace lokadb::router {

// What an analysis hangs on besides text and catalog.
struct Surroundings {
  std::string database, role, search_path;
  std::uint64_t hash = 0;

  static std::shared_ptr<const Surroundings> make(std::string_view database, std::string_view role,
                                                  std::string_view search_path);
  bool operator==(const Surroundings&) const = default;
};
using SurroundingsPtr = std::shared_ptr<const Surroundings>;

// Of one text: an analysis for each of its statements.
struct Text {
  sql::TemplatePtr facts;
  std::vector<route::Analysis> analyses;
  CatalogPtr catalog;
  SurroundingsPtr surroundings;
  std::string fingerprint;  // 16 hexadecimal digits
};
using TextPtr = std::shared_ptr<const Text>;

// Of a prepared statement, whose text is always the same.
struct Prepared {
  TextPtr text;
  std::string sql;
  route::LiteralList literals;  // in `sql`
};
using PreparedPtr = std::shared_ptr<const Prepared>;

// Buffers of a session, used again and again.
struct Scratch {
  sql::Lifted lifted, exact;
};

class Analyses {
 public:
  Analyses();
  ~Analyses();

  // Never null. Afterwards `scratch.lifted` has the literals of the text.
  TextPtr get(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog,
              const SurroundingsPtr& surroundings, Scratch& scratch);
  // The same for the statement that the host knows as number `known_as` (not 0).
  PreparedPtr prepared(std::uint64_t known_as, std::string_view sql, bool has_standard_strings,
                       const CatalogPtr& catalog, const SurroundingsPtr& surroundings, Scratch& scratch);
  // What was made of another catalog of the database than this one: it would keep the catalog.
  void forget_stale(std::string_view database, const CatalogPtr& current);

 private:
  struct Entry;
  struct Shard;
  struct Place {
    std::uint64_t hash;
    std::string_view key;    // of a template; empty for a prepared statement
    std::uint64_t known_as;  // of a prepared statement; 0 for a template
    bool has_standard_strings;
  };
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kShardLimit = (32u << 20) / kShards;  // bytes

  std::shared_ptr<const void> find(const Place& place, const CatalogPtr& catalog, const Surroundings& surroundings);
  void keep(const Place& place, std::shared_ptr<const void> what, const Text& text, std::size_t bytes);
  TextPtr make(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog,
               const SurroundingsPtr& surroundings, Scratch& scratch);

  sql::TemplateCache templates_;
  std::unique_ptr<std::array<Shard, kShards>> shards_;
};

}  // namespace lokadb::router
