// The first of the two steps of a decision: what a statement's text and the catalog say together, for every value its
// literals and parameters may have. Done once for a template, catalog and search path, and kept. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "route/reasons.h"
#include "sql/statement.h"

namespace lokadb::route {

enum class Touch : std::uint8_t {
  Nothing,      // no relation at all and nothing that might read one unseen
  CloudTables,  // plain tables of the cloud
  Unknown,      // may touch anything
  LokadbTables,
};

enum class Access : std::uint8_t { Read, LockingRead, Write };

// One way by which the organization of a relation is known: a column equals a value.
struct Source {
  enum class Kind : std::uint8_t {
    Tenant,  // the values are organizations
    Key,     // the values are keys of `table`, whose refs say the organization
  } kind = Kind::Tenant;
  std::uint16_t table = 0;                               // number in the catalog; Tenant: of the relation's own table
  catalog::ValueType type = catalog::ValueType::BigInt;  // of the column that is compared
  // More than one (an IN list, rows of VALUES): they must all come out as the same organization.
  std::vector<sql::Value> values;
  bool is_array = false;  // the one value is an array of them
  // New rows: a key that belongs to nobody leaves the organization unknown. Else such a key just finds no row.
  bool must_exist = false;
  // There is no foreign key behind the relation: a key that nobody has may still be in rows.
  bool may_dangle = false;
};

// A relation of the statement that is under LokaDB.
struct Bound {
  std::uint16_t relation = 0;  // in Statement::relations
  std::uint16_t table = 0;     // in Catalog::tables()
  bool is_target = false;      // of INSERT, UPDATE, DELETE, COPY
  // Any one of these tells its organization; Tenant first. Empty: only if the application names it.
  std::vector<std::uint16_t> sources;  // in Analysis::sources
};

// What the cloud path cannot do for an organization that has moved (SPEC C6, D5b). The local part can do the first two
// for one that has not.
struct FdwCannot {
  bool conflict_target = false, group_by_key = false, skip_locked = false, nowait = false, current_of = false;
  bool any() const { return conflict_target || group_by_key || skip_locked || nowait || current_of; }
};

struct Analysis {
  std::shared_ptr<const catalog::Catalog> catalog;  // keeps what is referred to
  Touch touch = Touch::Nothing;
  Access access = Access::Read;
  sql::StatementClass kind = sql::StatementClass::Empty;
  // Why it never goes direct, whatever its values and whoever names the organization; None: it may.
  Reason cloud_reason = Reason::None;
  std::string detail;  // to the reason, for people: the function's name, the table's
  // Its conditions are understood well enough to tell the organization by them (for the cloud path, too).
  bool sources_are_sound = false;
  std::vector<Bound> bound;
  std::vector<Source> sources;
  // Every organization that the statement's conditions or new rows name, for the cross-check (SPEC T2).
  std::vector<std::uint16_t> named_by_itself;  // in sources
  std::vector<std::uint16_t> tables;           // the tables of `bound`, each once
  // Arguments of lokadb.enter: definitions and rights of the client's role.
  std::string p_tables, p_rights;
  FdwCannot fdw_cannot;
  // ON CONFLICT (key, tenant), for which the organization has no index: to be sent there as ON CONFLICT (key).
  bool conflict_is_key_and_tenant = false;
  // Relations to write as the local part for an organization that has not moved (SPEC C6): the cloud's root cannot.
  std::vector<std::uint16_t> local_parts;  // in Statement::relations
  // It does nothing but set custom settings until the transaction ends, which can be done anywhere.
  bool sets_locally = false;
  // A column whose type is not PostgreSQL's own is in its results or parameters: types are to be translated (SPEC D9).
  bool has_user_types = false;

  // Writes. The new rows' key is not in the statement and is computed in the cloud, from this default (SPEC W2).
  bool needs_new_keys = false;
  bool may_change_keys = false;  // INSERT, DELETE, COPY: there is a refs step
  // Relations without a foreign key that it sets: check_parents looks at them in the refs step (SPEC W6).
  std::vector<std::uint16_t> declared_parents;  // columns of the target
  // For each $n: it stands in one place only, so that its type, if not declared, is that of what it is compared with.
  std::vector<bool> is_used_once;
  // The tenant column is assigned this: direct only if it is the organization's own value (as ORMs write all columns).
  std::vector<sql::Value> assigned_tenants;
  // The same for the key: direct only if it is one of the values that the condition says the key has.
  std::vector<sql::Value> assigned_keys, condition_keys;
};

// Never fails: what is not understood has a cloud_reason. statement is borrowed for the call only.
Analysis analyse(std::shared_ptr<const catalog::Catalog> catalog, const sql::Statement& statement,
                 const catalog::SearchPath& path);

}  // namespace lokadb::route
