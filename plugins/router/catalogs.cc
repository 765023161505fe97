#include "catalogs.h"

namespace lokadb::router {

Catalogs::Known Catalogs::find(std::string_view database) const {
  std::shared_lock lock(mutex_);
  auto it = known_.find(database);
  return it != known_.end() ? it->second : Known{};
}

std::vector<std::pair<std::string, Catalogs::Known>> Catalogs::all() const {
  std::shared_lock lock(mutex_);
  return {known_.begin(), known_.end()};
}

std::string Catalogs::changed(std::string_view database, std::string_view document, bool is_fresh) {
  CatalogPtr made;
  std::string fault;
  const bool has_none = is_fresh && document.empty();
  if (is_fresh && !has_none) {
    auto parsed = catalog::Catalog::parse(document);
    if (parsed)
      made = std::move(*parsed);
    else
      fault = parsed.error().log_text();
  }
  std::unique_lock lock(mutex_);
  Known& known = known_[std::string(database)];
  known.is_stale = made == nullptr && !has_none;
  if (made != nullptr || has_none) known.catalog = std::move(made);
  return fault;
}

}  // namespace lokadb::router
