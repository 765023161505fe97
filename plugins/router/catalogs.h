// The routing catalog of each cloud database, as its feed last said it. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"

namespace lokadb::router {

using CatalogPtr = std::shared_ptr<const catalog::Catalog>;

class Catalogs {
 public:
  struct Known {
    CatalogPtr catalog;    // null: never seen, or there is none
    bool is_stale = true;  // the feed has been lost since
    // Not even whether the database has tables under LokaDB.
    bool is_unknown() const { return catalog == nullptr && is_stale; }
  };
  Known find(std::string_view database) const;
  std::vector<std::pair<std::string, Known>> all() const;
  // The feed's news; a fresh one without a document: the database has no routing catalog. Returns what is wrong with
  // the document; empty: nothing.
  std::string changed(std::string_view database, std::string_view document, bool is_fresh);

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace lokadb::router
