// From the document of lokadb.catalog() to a Catalog. The document comes from our own function, so that anything
// unexpected in it is one fault, told in one error; nothing half read is ever used.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "catalog/catalog.h"

namespace lokadb::catalog {

namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

std::string text(const Json& at, const char* name) { return at.at(name).get<std::string>(); }
std::string text_or_none(const Json& at, const char* name) {
  auto found = at.find(name);
  return found == at.end() || found->is_null() ? std::string() : found->get<std::string>();
}
std::uint32_t oid_or_none(const Json& at, const char* name) { return at.value(name, std::uint32_t{0}); }

template <class T>
T one_of(std::string_view word, std::initializer_list<std::pair<std::string_view, T>> words) {
  for (const auto& [name, value] : words)
    if (name == word) return value;
  throw std::runtime_error("unknown word " + std::string(word));
}

ValueType type_of(const std::string& name) {
  auto type = value_type(name);
  if (!type) throw std::runtime_error("unknown type " + name);
  return *type;
}

std::uint16_t column_of(const Table& table, const Json& name) {
  std::uint16_t column = table.column(name.get<std::string>());
  if (column == kNoColumn) throw std::runtime_error(table.quoted + " has no column " + name.get<std::string>());
  return column;
}

Column make_column(const Json& j) {
  Column c;
  c.name = text(j, "name");
  c.number = j.at("number").get<std::int16_t>();
  c.type = j.at("type").get<std::uint32_t>();
  c.type_name = text(j, "type_name");
  c.not_null = j.at("not_null").get<bool>();
  c.default_sql = text_or_none(j, "default");
  c.has_default = !c.default_sql.empty();
  c.is_generated = j.at("generated").get<bool>();
  c.is_identity = j.at("identity").get<bool>();
  c.is_always = j.value("always", c.is_identity);
  c.has_collation = !text_or_none(j, "collation").empty();
  return c;
}

UniqueSet make_unique_set(const Table& table, const Json& j) {
  UniqueSet set{text(j, "name"), j.at("constraint").get<bool>(), {}};
  for (const Json& name : j.at("columns")) set.columns.push_back(column_of(table, name));
  std::sort(set.columns.begin(), set.columns.end());
  return set;
}

Trigger make_trigger(const Json& j) {
  return {text(j, "name"), j.at("row").get<bool>(), j.at("insert").get<bool>(), j.at("update").get<bool>(),
          j.at("delete").get<bool>()};
}

Table make_table(const Json& j) {
  Table t;
  t.schema = text(j, "schema");
  t.name = text(j, "name");
  t.quoted = text(j, "quoted");
  t.oid = j.at("oid").get<std::uint32_t>();
  t.fingerprint = text(j, "fingerprint");
  for (const Json& column : j.at("columns")) t.columns.push_back(make_column(column));
  t.key = column_of(t, j.at("key"));
  t.tenant = column_of(t, j.at("tenant"));
  t.key_type = type_of(text(j, "key_type"));
  t.tenant_type = type_of(t.columns[t.tenant].type_name);
  t.tenant_added = j.at("tenant_added").get<bool>();
  for (const Json& set : j.at("unique")) t.unique_sets.push_back(make_unique_set(t, set));
  t.refs = text(j, "refs");
  const Json& local = j.at("local_part");
  t.local_schema = text(local, "schema");
  t.local_name = text(local, "name");
  t.local_part = text(local, "quoted");
  for (const Json& k : j.at("cloud_keys"))
    t.cloud_keys.push_back(
        {column_of(t, k.at("column")), text(k, "constraint"), text(k, "refers_to"), k.at("is_tenant").get<bool>()});
  for (const Json& trigger : j.at("triggers")) t.triggers.push_back(make_trigger(trigger));
  t.policies = j.at("policies").get<std::vector<std::string>>();
  t.rules = j.at("rules").get<std::vector<std::string>>();
  t.collisions = j.at("collisions").get<std::vector<std::string>>();
  return t;
}

Organization make_organization(const Json& j) {
  Organization o;
  o.id = text(j, "org");
  auto profile = profile_of(text(j, "profile"));
  if (!profile) throw std::runtime_error("unknown profile " + text(j, "profile"));
  o.profile = *profile;
  o.generation = j.at("generation").get<std::int64_t>();
  o.server = text_or_none(j, "server");
  o.host = text_or_none(j, "host");
  o.port = text_or_none(j, "port");
  o.dbname = text_or_none(j, "dbname");
  o.database_id = text_or_none(j, "database_id");
  o.is_mapped = j.at("mapped").get<bool>();
  return o;
}

UserType make_type(const Json& j) {
  using Kind = UserType::Kind;
  UserType t;
  t.oid = j.at("oid").get<std::uint32_t>();
  t.kind = one_of<Kind>(text(j, "kind"), {{"base", Kind::Base},
                                          {"enum", Kind::Enum},
                                          {"domain", Kind::Domain},
                                          {"composite", Kind::Composite},
                                          {"range", Kind::Range},
                                          {"array", Kind::Array}});
  t.schema = text(j, "schema");
  t.name = text(j, "name");
  t.extension = text_or_none(j, "extension");
  t.element = oid_or_none(j, "element");
  t.base = oid_or_none(j, "base");
  t.array = oid_or_none(j, "array");
  return t;
}

}  // namespace

class Loader {
 public:
  static std::shared_ptr<const Catalog> load(const Json& document) {
    if (document.at("format").get<int>() > kFormat)
      throw std::runtime_error("it was made by a newer lokadb: update the proxy");
    auto made = std::make_shared<Catalog>();
    load_frame(*made, document);
    load_tables(*made, document.at("tables"));
    load_organizations(*made, document.at("organizations"));
    for (const Json& j : document.at("types")) made->types_.emplace(j.at("oid").get<std::uint32_t>(), make_type(j));
    for (const Json& j : document.at("relations"))
      made->others_.emplace(text(j, "name"), Catalog::Other{text(j, "schema"), kind_of(text(j, "kind"))});
    load_shadows(made->functions_, document.at("functions"));
    load_shadows(made->operators_, document.at("operators"));
    return made;
  }

 private:
  static OtherKind kind_of(const std::string& word) {
    return one_of<OtherKind>(word, {{"view", OtherKind::View},
                                    {"part", OtherKind::Part},
                                    {"refs", OtherKind::Refs},
                                    {"active", OtherKind::Active}});
  }

  static void load_frame(Catalog& c, const Json& document) {
    c.tenant_type_ = type_of(text(document, "tenant_type"));
    c.nobody_ = text(document, "nobody");
    c.setting_ = text(document, "setting");
    c.version_ = text(document, "version");
    c.generation_ = document.at("generation").get<std::int64_t>();
    c.server_version_ = document.at("server_version").get<int>();
    c.casts_ = document.at("casts").get<std::vector<std::string>>();
  }

  static void load_tables(Catalog& c, const Json& tables) {
    std::unordered_map<std::uint32_t, std::uint16_t> by_oid;
    for (const Json& j : tables) {
      c.tables_.push_back(make_table(j));
      Table& t = c.tables_.back();
      t.number = static_cast<std::uint16_t>(c.tables_.size() - 1);
      by_oid[t.oid] = t.number;
      c.table_index_.emplace(t.name, t.number);
    }
    for (std::size_t i = 0; i < c.tables_.size(); ++i) {
      Table& t = c.tables_[i];
      for (const Json& p : tables[i].at("parents"))
        t.parents.push_back({column_of(t, p.at("column")), by_oid.at(p.at("parent").get<std::uint32_t>()),
                             p.at("declared").get<bool>(), text(p, "on_delete")});
      for (const Json& child : tables[i].at("changes_children"))
        t.changed_children.push_back(by_oid.at(child.get<std::uint32_t>()));
    }
  }

  static void load_organizations(Catalog& c, const Json& organizations) {
    for (const Json& j : organizations) {
      c.organizations_.push_back(make_organization(j));
      const Organization& o = c.organizations_.back();
      c.organization_index_.emplace(o.id, c.organizations_.size() - 1);
      c.has_moved_ |= o.profile != Profile::Local;
      c.has_direct_ |= o.profile == Profile::Direct;
    }
  }

  static void load_shadows(Catalog::Names& names, const Json& object) {
    for (const auto& [name, how] : object.items())
      names[name] = one_of<Shadow>(how.get<std::string>(), {{"typed", Shadow::Typed}, {"any", Shadow::Any}});
  }
};

Result<std::shared_ptr<const Catalog>> Catalog::parse(std::string_view document) {
  try {
    return Loader::load(Json::parse(document));
  } catch (const std::exception& fault) {
    return Error{std::string_view("XX000"),
                 Severity::Error,
                 std::string("the routing catalog of the cloud cannot be read: ") + fault.what(),
                 {}};
  }
}

}  // namespace lokadb::catalog
