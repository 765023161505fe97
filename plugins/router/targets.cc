#include "targets.h"

#include <algorithm>
#include <cstdlib>

#include "sql/rewrite.h"

namespace lokadb::router {

namespace {

std::string identifier(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += c;
    out += c;
  }
  return out + "\"";
}

void append_row(std::string& rows, const std::string& row) { rows += (rows.empty() ? "(" : ",(") + row + ")"; }

struct Expected {
  std::string tables;   // rows (name)
  std::string columns;  // rows (table, column, table's oid in the cloud, column's number in the cloud, type or 0)
};

Expected expected_of(const catalog::Catalog& catalog) {
  Expected e;
  for (const catalog::Table& table : catalog.tables()) {
    if (table.schema != "public") continue;
    append_row(e.tables, sql::quoted_literal(table.name));
    for (const catalog::Column& column : table.columns)
      append_row(e.columns, sql::quoted_literal(table.name) + "," + sql::quoted_literal(column.name) + "," +
                                std::to_string(table.oid) + "," + std::to_string(column.number) + "," +
                                std::to_string(column.is_user_type() ? 0 : column.type));
  }
  return e;
}

constexpr std::string_view kFault = R"(SELECT pg_catalog.concat_ws('; ',
  (SELECT 'table ' || f.name || ' is missing' FROM found f WHERE f.oid IS NULL LIMIT 1),
  (SELECT 'table ' || f.name || CASE WHEN f.label IS NULL THEN ' has no label' ELSE ' has the label "' || f.label || '"' END
     FROM found f, wanted w WHERE f.oid IS NOT NULL AND f.label IS DISTINCT FROM w.label LIMIT 1),
  (SELECT 'column ' || v.tab || '.' || v.col || ' differs from the cloud''s' FROM columns v JOIN found f ON f.name = v.tab
     LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = f.oid AND a.attname = v.col AND NOT a.attisdropped
     WHERE f.oid IS NOT NULL AND (a.attname IS NULL OR (v.type <> 0 AND a.atttypid <> v.type)) LIMIT 1),
  (SELECT 'the role is a superuser, or may create roles or databases, replicate or pass row security' FROM pg_catalog.pg_roles r
     WHERE r.rolname = current_user AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)),
  CASE WHEN pg_catalog.has_schema_privilege('public', 'CREATE') THEN 'the role may create objects in schema public' END,
  CASE WHEN pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') THEN 'the role may create schemas' END,
  (SELECT 'the role owns table ' || f.name FROM found f WHERE f.oid IS NOT NULL AND pg_catalog.pg_has_role(f.owner, 'MEMBER') LIMIT 1),
  (SELECT 'the role lacks rights on table ' || f.name FROM found f WHERE f.oid IS NOT NULL AND NOT (
     pg_catalog.has_table_privilege(f.oid, 'SELECT') AND pg_catalog.has_table_privilege(f.oid, 'INSERT') AND
     pg_catalog.has_table_privilege(f.oid, 'UPDATE') AND pg_catalog.has_table_privilege(f.oid, 'DELETE')) LIMIT 1),
  (SELECT 'the role has more than SELECT, INSERT, UPDATE, DELETE on table ' || f.name FROM found f WHERE f.oid IS NOT NULL AND (
     pg_catalog.has_table_privilege(f.oid, 'TRUNCATE') OR pg_catalog.has_table_privilege(f.oid, 'REFERENCES') OR
     pg_catalog.has_table_privilege(f.oid, 'TRIGGER')) LIMIT 1)),
 coalesce((SELECT pg_catalog.string_agg(f.oid || '.' || a.attnum || '=' || v.cloud || '.' || v.number, ' ')
   FROM columns v JOIN found f ON f.name = v.tab JOIN pg_catalog.pg_attribute a ON a.attrelid = f.oid AND a.attname = v.col), ''))";

}  // namespace

std::size_t Targets::Hash::operator()(const Key& key) const {
  return std::hash<const void*>()(key.first) * 31 + std::hash<const void*>()(key.second);
}

TargetPtr Targets::get(const std::shared_ptr<const catalog::Catalog>& catalog,
                       const std::shared_ptr<const Settings>& settings, const catalog::Organization& organization,
                       const Logins& logins, const StoredLogins& stored) {
  Key key{&organization, settings.get()};
  std::lock_guard lock(mutex_);
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  auto made = std::make_shared<Target>();
  made->catalog = catalog;
  made->settings = settings;
  made->organization = &organization;
  made->login = logins.find(organization.id, stored);
  made->port = static_cast<std::uint32_t>(std::atoi(organization.port.c_str()));
  made->greeting = greeting(*catalog, organization, *settings);
  made->number = ++last_number_;
  bytes_ += made->greeting.size();
  if (bytes_ > kMostBytes) {
    known_.clear();
    bytes_ = made->greeting.size();
  }
  known_.emplace(key, made);
  return made;
}

void Targets::clear() {
  std::lock_guard lock(mutex_);
  known_.clear();
  bytes_ = 0;
}

std::string greeting(const catalog::Catalog& catalog, const catalog::Organization& organization,
                     const Settings& settings) {
  std::string sql = "SET search_path = public;";
  for (const auto& [name, value] : settings)
    if (name != kSearchPath) sql += "SET " + identifier(name) + " = " + sql::quoted_literal(value) + ";";
  Expected expected = expected_of(catalog);
  std::string label = "lokadb: organization " + organization.id + " database " + organization.database_id;
  sql += "WITH wanted(label) AS (VALUES (" + sql::quoted_literal(label) + "))";
  sql += ", tables(name) AS (VALUES " + expected.tables + ")";
  sql += ", columns(tab, col, cloud, number, type) AS (VALUES " + expected.columns + ")";
  sql +=
      ", found AS (SELECT t.name, c.oid, c.relowner AS owner, pg_catalog.obj_description(c.oid, 'pg_class') AS label"
      " FROM tables t LEFT JOIN pg_catalog.pg_class c ON c.relname = t.name AND c.relkind = 'r'"
      " AND c.relnamespace = 'public'::pg_catalog.regnamespace) ";
  return sql.append(kFault);
}

}  // namespace lokadb::router
