// What routing must know of the cloud database: which tables are under LokaDB and what they are made of, how they refer
// to each other, where each organization lives, and what else of the database could give a statement another meaning.
// Made from the document that lokadb.catalog() returns; immutable, shared by all threads as shared_ptr<const Catalog>.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "catalog/value.h"

namespace lokadb::catalog {

// The SQL that gives the document, one row with one text.
inline constexpr std::string_view kCatalogQuery = "SELECT lokadb.catalog()::text";

inline constexpr std::uint16_t kNoColumn = 0xffff;
inline constexpr std::uint32_t kFirstUserOid = 16384;  // smaller ones are PostgreSQL's own, the same on every server

// A type that is not PostgreSQL's own and that a column uses, directly or inside another.
struct UserType {
  enum class Kind : std::uint8_t { Base, Enum, Domain, Composite, Range, Array };
  std::uint32_t oid = 0;
  Kind kind = Kind::Base;
  std::string schema, name;
  std::string extension;      // it belongs to; "" if none
  std::uint32_t element = 0;  // of an array
  std::uint32_t base = 0;     // of a domain
  std::uint32_t array = 0;    // the array type of it
};

struct Column {
  std::string name;
  std::int16_t number = 0;  // attnum of the root
  std::uint32_t type = 0;
  std::string type_name;
  bool not_null = false, has_default = false, is_generated = false, is_identity = false;
  bool is_always = false;      // identity GENERATED ALWAYS
  bool has_collation = false;  // another than its type's own
  std::string default_sql;
  bool is_user_type() const { return type >= kFirstUserOid; }
};

struct UniqueSet {
  std::string name;  // of the index, and of the constraint if it is one
  bool is_constraint = false;
  std::vector<std::uint16_t> columns;  // numbers in Table::columns, sorted
};

struct Parent {
  std::uint16_t column = kNoColumn;  // that holds the parent's key
  std::uint16_t table = 0;           // number in Catalog::tables()
  bool is_declared = false;          // no foreign key stands behind it
  std::string on_delete;             // "" if declared
};

struct CloudKey {  // a foreign key to a table that is not under LokaDB
  std::uint16_t column = kNoColumn;
  std::string constraint, refers_to;
  bool is_tenant = false;  // the tenant column's own
};

struct Trigger {  // the application's
  std::string name;
  bool for_row = false, on_insert = false, on_update = false, on_delete = false;
};

struct Table {
  std::uint16_t number = 0;  // in Catalog::tables(), parents before children
  std::string schema, name;
  std::string quoted;  // schema.name as SQL wants it, and as lokadb.enter's p_tables and p_rights name it
  std::uint32_t oid = 0;
  std::string fingerprint;
  std::uint16_t key = kNoColumn, tenant = kNoColumn;
  ValueType key_type = ValueType::BigInt, tenant_type = ValueType::BigInt;
  bool tenant_added = false;  // by add-table: the application does not know the column
  std::vector<Column> columns;
  std::vector<UniqueSet> unique_sets;
  std::string refs;                                  // quoted
  std::string local_schema, local_name, local_part;  // local_part: quoted
  std::vector<Parent> parents;
  std::vector<std::uint16_t> changed_children;  // tables in which a DELETE here deletes or changes rows
  std::vector<CloudKey> cloud_keys;
  std::vector<Trigger> triggers;
  std::vector<std::string> policies, rules;  // the application's
  std::vector<std::string> collisions;       // schemas that have another relation of this name

  std::uint16_t column(std::string_view name) const;  // kNoColumn
  const Parent* parent(std::uint16_t column) const;
  // The local part, used by its own name, does all that the root would do for rows that are read.
  bool local_part_reads_alike() const { return policies.empty() && rules.empty(); }
};

enum class Profile : std::uint8_t { Local, Moving, Fdw, FdwDirect, Direct };
std::optional<Profile> profile_of(std::string_view name);
std::string_view profile_name(Profile profile);

struct Organization {
  std::string id;  // canonical
  Profile profile = Profile::Local;
  std::int64_t generation = 0;
  std::string server, host, port, dbname, database_id;
  bool is_mapped = false;  // the cloud can log in there
  bool has_moved() const { return profile != Profile::Local && profile != Profile::Moving; }
};

// The schemas in which a session's unqualified names are looked for.
struct SearchPath {
  std::vector<std::string> schemas;  // without pg_catalog in first place and without pg_temp
  // pg_catalog stands behind another schema, or pg_temp is named: functions, operators and types may be others.
  bool hides_built_ins = false;

  // From the setting's value as the server reports it. "$user" becomes the role.
  static SearchPath parse(std::string_view setting, std::string_view role);
};

// Other relations of the cloud that are not just rows.
enum class OtherKind : std::uint8_t {
  View,  // reaches a table under LokaDB
  Part,  // local part of a table
  Refs,
  Active,  // has triggers, rules or policies, or is a view or foreign table: may touch anything
};

// Somebody's own functions or operators that have the name of one of PostgreSQL's.
enum class Shadow : std::uint8_t {
  None,
  Typed,  // only for types of one's own
  Any,
};

class Catalog {
 public:
  // The document of lokadb.catalog(). Error (XX000) if it is not one, or of a newer format.
  static Result<std::shared_ptr<const Catalog>> parse(std::string_view document);

  std::span<const Table> tables() const { return tables_; }
  const Organization* organization(std::string_view id) const;  // nullptr: it has never moved
  const std::vector<Organization>& organizations() const { return organizations_; }
  bool has_moved_organizations() const { return has_moved_; }
  // Some organization has profile direct: the cloud cannot answer for all of them.
  bool has_direct_organizations() const { return has_direct_; }

  // The table that a name stands for. Found: it is under LokaDB, and no schema of the path has another relation of
  // that name. Hidden: it is not certain. Other: a relation that is not under LokaDB, or none.
  struct Found {
    enum class Kind : std::uint8_t { Table, Hidden, Other } kind = Kind::Other;
    const Table* table = nullptr;
    std::optional<OtherKind> other;
  };
  Found find(std::string_view schema, std::string_view name, const SearchPath& path) const;

  Shadow function_shadow(std::string_view name) const;
  Shadow operator_shadow(std::string_view name) const;
  const UserType* type(std::uint32_t oid) const;
  // Casts between PostgreSQL's own types that somebody made.
  const std::vector<std::string>& casts() const { return casts_; }

  // Organizations as they are written: canonical, and none of '', '*' and nobody().
  bool is_reserved(std::string_view canonical) const {
    return canonical.empty() || canonical == "*" || canonical == nobody_;
  }
  std::optional<std::string> canonical_organization(std::string_view text) const;

  ValueType tenant_type() const { return tenant_type_; }
  const std::string& nobody() const { return nobody_; }
  const std::string& setting() const { return setting_; }
  const std::string& version() const { return version_; }
  std::int64_t generation() const { return generation_; }
  int server_version() const { return server_version_; }

 private:
  friend class Loader;
  using Names = std::unordered_map<std::string, Shadow, TextHash, std::equal_to<>>;
  ValueType tenant_type_ = ValueType::BigInt;
  std::string nobody_, setting_, version_;
  std::int64_t generation_ = 0;
  int server_version_ = 0;
  bool has_moved_ = false, has_direct_ = false;
  std::vector<Table> tables_;
  std::vector<Organization> organizations_;
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> organization_index_;
  std::unordered_multimap<std::string, std::size_t, TextHash, std::equal_to<>> table_index_;  // by name
  struct Other {
    std::string schema;
    OtherKind kind;
  };
  std::unordered_multimap<std::string, Other, TextHash, std::equal_to<>> others_;  // by name
  Names functions_, operators_;
  std::unordered_map<std::uint32_t, UserType> types_;
  std::vector<std::string> casts_;
};

}  // namespace lokadb::catalog
