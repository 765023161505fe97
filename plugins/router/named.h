// What the plugin tenant says about a batch, for route::decide.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "plugin/lokadb_plugin.h"
#include "route/decide.h"

namespace lokadb::router {

class NamedFacts {
 public:
  explicit NamedFacts(const lokadb_batch* batch);
  bool is_empty() const { return facts_.empty(); }
  // The statement only names the organization for those behind it.
  bool is_naming(std::uint32_t statement) const;
  // What has been named for it, as it was written; empty: it is not known what. Null: nothing.
  const std::string* value_for(std::uint32_t statement) const;
  // Fills in what is known of the statement. The object must outlive `session`.
  void tell(std::uint32_t statement, const catalog::Catalog& catalog, route::Session& session) const;

 private:
  struct Fact {
    std::uint32_t kind, statement;
    std::string value;
  };
  std::vector<Fact> facts_;  // of the plugin tenant alone
};

// In other encodings a byte of a character may look like a letter or quote.
bool is_readable(std::string_view text, std::string_view client_encoding);

// That the statement names an organization by itself, while the application has named one.
int publish_about(lokadb_batch* batch, std::uint32_t statement, const route::Verdict& verdict);

// Cuts a Query with several statements into one for each, unless a plugin before has.
int split_queries(lokadb_batch* batch);

}  // namespace lokadb::router
