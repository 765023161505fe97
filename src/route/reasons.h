// Why a statement goes where it goes. Each verdict has exactly one reason; ids are stable, people and tools count them.
// This list is the only place: explain, SHOW, the manual and the error texts are made from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lokadb::route {

// X(enumerator, id, text, what to do about it). The text completes "goes through the cloud: ..." or "is refused: ...".
// An empty last column: nothing needs doing.
#define LOKADB_REASONS(X)                                                                                             \
  /* direct */                                                                                                        \
  X(TenantKnown, "tenant-known", "its own condition names the organization", "")                                      \
  X(KeyFound, "key-found", "its key belongs to the organization", "")                                                 \
  X(OrganizationNamed, "organization-named", "the application has named the organization", "")                        \
  /* no table under LokaDB */                                                                                         \
  X(NoLokadbTable, "no-lokadb-table", "no table under LokaDB is in it", "")                                           \
  X(TransactionControl, "transaction-control", "it begins, ends or divides a transaction", "")                        \
  X(Settings, "settings", "it reads or changes settings", "")                                                         \
  X(SessionCommand, "session-command", "it concerns the session, not tables", "")                                     \
  /* where the organization is */                                                                                     \
  X(NotMoved, "not-moved", "the organization has not moved", "move-org gives it a database of its own")               \
  X(Moving, "moving", "the organization is being moved", "")                                                          \
  X(ProfileFdw, "profile-fdw", "the organization's profile is fdw", "org-profile fdw+direct")                         \
  X(KeyUnknown, "key-unknown", "its key belongs to no organization",                                                  \
    "if rows have that key, lokadb refs-sync adds what is missing")                                                   \
  /* which organization */                                                                                            \
  X(OrganizationUnknown, "organization-unknown", "the organization of not every table is known",                      \
    "name the tenant column or a key in a condition on each table, or name the organization (lokadb.tenant)")         \
  X(SeveralOrganizations, "several-organizations", "it concerns several organizations",                               \
    "one statement for each organization")                                                                            \
  X(AllOrganizations, "all-organizations", "the application has named all organizations ('*')",                       \
    "name one organization")                                                                                          \
  X(ValueNotKnown, "value-not-known", "a key or organization is given in a form whose value only the server knows",   \
    "give it as a plain literal or parameter of the column's own type")                                               \
  X(OrganizationNotNamed, "organization-not-named", "profile direct: the organization is not named",                  \
    "add a condition on the tenant column, or name the organization (lokadb.tenant)")                                 \
  X(OtherOrganization, "other-organization", "it names another organization than the application has named",          \
    "correct one of the two; mismatch = log in section [tenant] for the time of a migration")                         \
  X(NamedUnusable, "named-unusable", "what the application has named is no organization",                             \
    "set lokadb.tenant to a value of the tenant column's type, to '*', or to nothing")                                \
  X(NamingNotFollowed, "naming-not-followed", "it names an organization by a setting that no plugin follows",         \
    "plugins = tenant, refs, router, and the setting's name in section [tenant]")                                     \
  X(Rejected, "rejected", "it names no organization, and the router's policy is to reject such statements",           \
    "name the organization, or put the statement's fingerprint into the list allow of section [router]")              \
  X(InsertWithoutOrganization, "insert-without-organization", "the organization of the new rows is not known",        \
    "insert the tenant column or the parent's key as a plain value, or name the organization")                        \
  /* what is in the statement */                                                                                      \
  X(NotUnderstood, "not-understood", "it has a form that LokaDB does not understand", "write it more plainly")        \
  X(SyntaxError, "syntax-error", "it is no SQL that PostgreSQL takes", "")                                            \
  X(CloudTable, "cloud-table", "it joins tables that are in the cloud only",                                          \
    "two statements, or add the table to LokaDB (add-table)")                                                         \
  X(View, "view", "it reads a view", "write the view's query out")                                                    \
  X(NameHidden, "name-hidden", "another schema has a relation of the same name",                                      \
    "drop or rename that relation, or write the table with its schema")                                               \
  X(OtherSchema, "other-schema", "the table is named with a schema, and that is not public",                          \
    "leave the schema out and set search_path for the role")                                                          \
  X(InternalTable, "internal-table", "it names a local part or refs table", "use the table's own name")               \
  X(OnlyTable, "only-table", "it says ONLY", "leave ONLY out: the root itself has no rows")                           \
  X(Function, "function", "it calls a function that is not on the list of safe ones",                                 \
    "compute the value first and send it as a parameter")                                                             \
  X(FunctionShadowed, "function-shadowed", "somebody's own function has the name of one of PostgreSQL's",             \
    "rename that function, or write pg_catalog. in front")                                                            \
  X(Operator, "operator", "it uses an operator that is not on the list of safe ones", "use one of PostgreSQL's own")  \
  X(Type, "type", "it uses a type that is not on the list of safe ones",                                              \
    "send the value as a parameter without a cast")                                                                   \
  X(ExtensionType, "extension-type", "it uses a column whose type is an extension's, a composite or a range",         \
    "leave the column out where it is not needed")                                                                    \
  X(Collation, "collation", "it uses a collation of one's own", "")                                                   \
  X(Cast, "cast", "the database has casts of its own between PostgreSQL's types", "drop them")                        \
  X(SystemColumn, "system-column", "it uses a system column (ctid, xmin, tableoid ...), which differs",               \
    "use the key; for optimistic locking a column of one's own")                                                      \
  X(ColumnNotFound, "column-not-found", "a name in it is no column of its tables, or of several", "")                 \
  X(WholeRow, "whole-row", "it uses a table's row as one value", "name the columns")                                  \
  X(TableFunction, "table-function", "a function stands in FROM together with tables", "")                            \
  X(Merge, "merge", "MERGE", "UPDATE and INSERT, or INSERT ... ON CONFLICT")                                          \
  X(WritesInWith, "writes-in-with", "it changes rows inside WITH", "one statement for each change")                   \
  X(Cursor, "cursor", "it makes or uses a cursor", "a portal with a row limit of the driver")                         \
  X(CurrentOf, "current-of", "WHERE CURRENT OF", "WHERE with the key")                                                \
  X(SqlPrepare, "sql-prepare", "PREPARE or EXECUTE in SQL", "prepare in the protocol, as drivers do")                 \
  X(Explain, "explain", "EXPLAIN", "")                                                                                \
  X(LockTable, "lock-table", "LOCK TABLE", "lock rows")                                                               \
  X(Truncate, "truncate", "TRUNCATE", "DELETE")                                                                       \
  X(Call, "call", "CALL or DO may do anything unseen", "")                                                            \
  X(SelectInto, "select-into", "SELECT INTO", "")                                                                     \
  X(Utility, "utility", "it is a command of maintenance", "")                                                         \
  X(Ddl, "ddl", "it changes definitions", "")                                                                         \
  X(CopyTo, "copy-to", "COPY TO", "")                                                                                 \
  X(CopyFrom, "copy-from", "COPY FROM in a form whose keys are not those of its rows",                                \
    "COPY with the key in the list of columns, without WHERE and ON_ERROR, the organization named")                   \
  /* what the table has */                                                                                            \
  X(RowTrigger, "row-trigger", "a table has a row trigger of the application",                                        \
    "the trigger runs in the cloud only; drop it if it is not needed")                                                \
  X(CloudKey, "cloud-key", "a table has a foreign key to a cloud table", "add that table to LokaDB, or drop the key") \
  X(Policy, "policy", "a table has row security of the application's own", "name the organization instead")           \
  X(Rule, "rule", "a table has rules", "")                                                                            \
  X(IdentityColumn, "identity-column", "a table has an identity column", "a sequence as default of the column")       \
  X(GeneratedColumn, "generated-column", "a table has a generated column", "")                                        \
  /* writes */                                                                                                        \
  X(ChangesKey, "changes-key", "it changes a key or the tenant column", "delete and insert")                          \
  X(CloudDefault, "cloud-default", "it relies on a default of the cloud other than the key's", "insert the value")    \
  X(Cascade, "cascade", "rows of other tables go or change with those it deletes",                                    \
    "delete the children first, and let the foreign key be NO ACTION")                                                \
  X(ConflictTarget, "conflict-target", "ON CONFLICT with a target that the organization has no unique index for",     \
    "name the key, the key and the tenant column, or the columns of a unique index")                                  \
  X(InsertSelect, "insert-select", "INSERT ... SELECT that does not name key and organization",                       \
    "name both, each as a plain value or column")                                                                     \
  X(WritesNotYetDirect, "writes-not-yet-direct", "it writes, which is not sent direct yet", "")                       \
  X(LocksNotYetDirect, "locks-not-yet-direct", "it locks rows, which is not sent direct yet", "")                     \
  /* what the cloud path cannot do for an organization that has moved */                                              \
  X(ConflictTargetFdw, "conflict-target-fdw", "ON CONFLICT with a target cannot go through the cloud",                \
    "profile fdw+direct, or ON CONFLICT DO NOTHING without a target")                                                 \
  X(GroupByKeyFdw, "group-by-key-fdw", "GROUP BY the key alone cannot go through the cloud",                          \
    "profile fdw+direct, or name all columns in GROUP BY")                                                            \
  X(SkipLockedFdw, "skip-locked-fdw", "SKIP LOCKED cannot go through the cloud: it would wait", "profile fdw+direct") \
  X(NowaitFdw, "nowait-fdw", "NOWAIT cannot go through the cloud: it would wait", "profile fdw+direct")               \
  X(CurrentOfFdw, "current-of-fdw", "WHERE CURRENT OF cannot go through the cloud", "WHERE with the key")             \
  /* the session, the proxy */                                                                                        \
  X(SettingChanged, "setting-changed", "the session has changed a setting that is not repeated in the organization",  \
    "SET LOCAL in transactions that need it")                                                                         \
  X(RoleChanged, "role-changed", "the session has changed its role", "log in as that role")                           \
  X(SearchPath, "search-path", "the session's search_path puts other schemas before PostgreSQL's own",                \
    "leave pg_catalog and pg_temp out of search_path")                                                                \
  X(TemporaryObjects, "temporary-objects", "the session has temporary objects, which may hide tables", "")            \
  X(UnseenCommands, "unseen-commands", "the transaction has run something that may have changed settings unseen", "") \
  X(InTransaction, "in-transaction", "an explicit transaction is open, which is not sent direct yet", "")             \
  X(RoleSettings, "role-settings", "role or database have settings that can change results",                          \
    "lokadb doctor names them")                                                                                       \
  X(CatalogStale, "catalog-stale", "the proxy has lost contact with the cloud's routing catalog", "")                 \
  X(CatalogDrift, "catalog-drift", "the organization's tables differ from the cloud's", "lokadb doctor")              \
  X(NoDirectLogin, "no-direct-login", "the proxy has no login for the organization's database",                       \
    "org-credentials -kind direct and section [control_plane], or section [customers_app]")                           \
  X(DatabaseNotUsable, "database-not-usable", "the organization's database has another label or too many rights",     \
    "lokadb doctor")                                                                                                  \
  X(StatementFailed, "statement-failed",                                                                              \
    "the organization's database did not take the statement; the cloud was asked", "")                                \
  X(ConnectionFailed, "connection-failed", "the organization's database does not answer", "")                         \
  X(EndsInFlush, "ends-in-flush", "the batch ends in Flush, so that its transaction stays open", "end it in Sync")    \
  X(SessionPooling, "session-pooling", "in session pooling it is not known what the server was set to",               \
    "pool_mode = transaction")                                                                                        \
  X(TooLarge, "too-large", "the statement is larger than max_routed_message", "raise the limit")

enum class Reason : std::uint8_t {
#define X(name, id, text, advice) name,
  LOKADB_REASONS(X)
#undef X
      None
};

struct ReasonInfo {
  std::string_view id, text, advice;
};

// All of them, in the order of the enumeration.
std::span<const ReasonInfo> reasons();
const ReasonInfo& info(Reason reason);  // None: all empty

}  // namespace lokadb::route
