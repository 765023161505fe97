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
  // It sets the setting, and the plugin tenant knows that.
  bool is_followed(std::uint32_t statement, std::string_view setting) const;
  // What has been named for it, as it was written; empty: it is not known what. Null: nothing.
  const std::string* value_for(std::uint32_t statement) const;
  // The client's role may name all organizations.
  bool is_all_allowed() const;
  // It is a value of the session, which no server has.
  bool is_held(std::uint32_t statement) const;
  // The setting of such a value; empty if there is none.
  std::string held_setting() const;
  // Fills in what is known of the statement. The object must outlive `session`.
  void tell(std::uint32_t statement, const catalog::Catalog& catalog, route::Session& session) const;
  // Of a database whose catalog is not known, or that has no LokaDB tables: what servers do not have of it is set in
  // front of what may read tables.
  int set_in_front(lokadb_batch* batch, const lokadb_batch_info& info, lokadb_verdict& out) const;

 private:
  struct Fact {
    std::uint32_t kind, statement;
    std::string value;
    std::string setting;  // LOKADB_FACT_NAMED: servers do not have its value. LOKADB_FACT_FOLLOWED: the one that is set
  };
  const Fact* named_for(std::uint32_t statement) const;
  std::vector<Fact> facts_;  // of the plugin tenant alone
};

// That the statement names an organization by itself, while the application has named one.
int publish_about(lokadb_batch* batch, std::uint32_t statement, const route::Verdict& verdict);

// Cuts a Query with several statements into one for each, unless a plugin before has.
int split_queries(lokadb_batch* batch);

}  // namespace lokadb::router
