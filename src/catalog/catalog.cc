#include "catalog/catalog.h"

#include <algorithm>

namespace lokadb::catalog {

namespace {

constexpr std::string_view kProfiles[] = {"local", "moving", "fdw", "fdw+direct", "direct"};

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// One name of a list as in search_path: folded to lower case unless quoted. Moves `text` behind it and its comma.
std::string next_name(std::string_view& text) {
  std::string name;
  text = trim(text);
  if (!text.empty() && text.front() == '"') {
    std::size_t i = 1;
    for (; i < text.size(); ++i) {
      if (text[i] == '"') {
        if (i + 1 == text.size() || text[i + 1] != '"') break;
        ++i;
      }
      name += text[i];
    }
    text.remove_prefix(std::min(i + 1, text.size()));
  } else {
    std::size_t end = std::min(text.find(','), text.size());
    name = lower(trim(text.substr(0, end)));
    text.remove_prefix(end);
  }
  std::size_t comma = text.find(',');
  text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
  return name;
}

}  // namespace

std::optional<Profile> profile_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kProfiles); ++i)
    if (kProfiles[i] == name) return static_cast<Profile>(i);
  return std::nullopt;
}

std::string_view profile_name(Profile profile) { return kProfiles[static_cast<std::size_t>(profile)]; }

std::uint16_t Table::column(std::string_view wanted) const {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == wanted) return static_cast<std::uint16_t>(i);
  return kNoColumn;
}

const Parent* Table::parent(std::uint16_t wanted) const {
  for (const Parent& p : parents)
    if (p.column == wanted) return &p;
  return nullptr;
}

SearchPath SearchPath::parse(std::string_view setting, std::string_view role) {
  SearchPath path;
  bool is_first = true;
  for (std::string_view rest = setting; !trim(rest).empty();) {
    std::string name = next_name(rest);
    if (name == "$user") name = role;
    if (name == "pg_catalog") {
      path.hides_built_ins |= !is_first;
    } else if (name == "pg_temp") {
      path.hides_built_ins = true;
    } else if (!name.empty() && !contains(path.schemas, name)) {
      path.schemas.push_back(std::move(name));
    }
    is_first = false;
  }
  return path;
}

const Organization* Catalog::organization(std::string_view id) const {
  auto found = organization_index_.find(id);
  return found == organization_index_.end() ? nullptr : &organizations_[found->second];
}

Catalog::Found Catalog::find(std::string_view schema, std::string_view name, const SearchPath& path) const {
  using Kind = Found::Kind;
  auto is_wanted = [&](const std::string& where) {
    return schema.empty() ? contains(path.schemas, where) : where == schema;
  };
  const Table* table = nullptr;
  for (auto [i, end] = table_index_.equal_range(name); i != end; ++i) {
    const Table& t = tables_[i->second];
    if (!is_wanted(t.schema)) continue;
    if (table) return {Kind::Hidden, nullptr, {}};  // two tables under LokaDB
    table = &t;
  }
  if (table) {
    // Any other schema of the path, also a later one: the role may be barred from the earlier. pg_catalog always
    // counts.
    if (schema.empty())
      for (const std::string& other : table->collisions)
        if (other == "pg_catalog" || contains(path.schemas, other)) return {Kind::Hidden, nullptr, {}};
    return {Kind::Table, table, {}};
  }
  for (auto [i, end] = others_.equal_range(name); i != end; ++i)
    if (is_wanted(i->second.schema)) return {Kind::Other, nullptr, i->second.kind};
  return {};
}

Shadow Catalog::function_shadow(std::string_view name) const {
  auto found = functions_.find(name);
  return found == functions_.end() ? Shadow::None : found->second;
}

Shadow Catalog::operator_shadow(std::string_view name) const {
  auto found = operators_.find(name);
  return found == operators_.end() ? Shadow::None : found->second;
}

const UserType* Catalog::type(std::uint32_t oid) const {
  auto found = types_.find(oid);
  return found == types_.end() ? nullptr : &found->second;
}

std::optional<std::string> Catalog::canonical_organization(std::string_view text) const {
  auto made = canonical_text(tenant_type_, text);
  return made && !is_reserved(*made) ? made : std::nullopt;
}

}  // namespace lokadb::catalog
