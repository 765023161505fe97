// What one SQL statement says, as far as routing needs it: which relations it names and how it uses them, which of
// their columns must equal what, which functions and operators it calls, and what kind of statement it is. Pure facts:
// nothing here knows a catalog, so names are as they were written (after PostgreSQL's folding to lower case).
//
// Facts belong to a *template*, the text with its literals lifted out, and serve every statement of that template: a
// literal is referred to by its number in the text, never by its value.
//
// Whatever the parser met and did not understand is in Statement::not_understood. A statement with such an entry is
// never sent direct, so a form that is missing here costs speed and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lokadb::sql {

// Relations of one statement are numbered from 0, and sets of them are bit masks: a statement with more is not
// understood.
inline constexpr std::size_t kMaxRelations = 64;
using RelationSet = std::uint64_t;
inline constexpr std::uint16_t kNone = 0xffff;

enum class StatementClass : std::uint8_t {
  Select,  // also VALUES and TABLE
  Insert,
  Update,
  Delete,
  Merge,
  Copy,
  Set,          // SET, RESET, SET TRANSACTION, SET CONSTRAINTS: see `setting`
  Transaction,  // BEGIN, COMMIT, SAVEPOINT, PREPARE TRANSACTION ...: see `transaction`
  Cursor,       // DECLARE, FETCH, MOVE, CLOSE
  Prepare,      // PREPARE, EXECUTE, DEALLOCATE
  Explain,
  Show,
  Lock,
  Truncate,
  Call,  // CALL and DO: may do anything unseen
  Discard,
  Notify,   // LISTEN, UNLISTEN, NOTIFY
  Ddl,      // CREATE, ALTER, DROP, GRANT, REVOKE, COMMENT, ...
  Utility,  // VACUUM, ANALYZE, CHECKPOINT, ...
  Empty,
};

// A value written in the statement, or where it comes from.
struct Value {
  enum class Kind : std::uint8_t {
    Other,  // an expression
    Null,
    Default,    // the word DEFAULT
    Literal,    // index: its number among the literals of the text, from 0
    Parameter,  // index: n of $n
    Boolean,    // index: 0 or 1; TRUE and FALSE are words, no literals
    Word,       // of SET alone: `word`, as in SET search_path = app, public
  };
  Kind kind = Kind::Other;
  std::uint16_t index = 0;
  bool is_negated = false;  // a minus in front of a numeric literal
  // The type of an explicit cast ("bigint" is "int8"), "" if none; schema.name if qualified, "[]" behind for arrays. A
  // type with a modifier, as varchar(3), can change the value: such a cast makes it Other, and so do two casts.
  std::string cast;
  std::string word;
};

// A column of a relation. `relation` is kNone where the name is not qualified and several relations of its scope (or
// of the scopes around it) could have it: then the catalog tells.
struct Column {
  std::uint16_t relation = kNone;
  std::uint16_t scope = kNone;
  std::string name;  // "*": the whole row
  // Two traps. A name equal to its relation's alias may stand for the whole row. And what looks like a column can be
  // the call of a function on the row, d.full_name for full_name(d): a name that the relation lacks is not understood.
};

// A FROM list and what is nested in it sees. An unqualified name belongs to the innermost scope that has it.
struct Scope {
  std::uint16_t parent = kNone;
  std::vector<std::uint16_t> relations;
  bool has_unknown_columns = false;  // functions in FROM and the like, whose columns are not listed
};

enum class Use : std::uint8_t { Read, Insert, Update, Delete, Merge, CopyFrom, CopyTo, Lock, Truncate, Other };

// One mention of a table, view or whatever a name in FROM may be; and of each common table expression and subquery in
// FROM, so that columns can be told apart.
struct Relation {
  enum class Kind : std::uint8_t { Named, Subquery, CommonTable };
  Kind kind = Kind::Named;
  std::string catalog;
  std::string schema;  // "": to be found by search_path
  std::string name;
  std::string alias;       // what columns are qualified with; the name if none was given
  bool has_alias = false;  // one was written
  bool has_column_aliases = false;
  bool is_only = false;         // ONLY t
  std::uint16_t scope = kNone;  // that it stands in
  Use use = Use::Read;
  std::int32_t location = -1;  // byte of the text at which its name begins
  // Columns that it is known to have by its own making (Subquery, CommonTable); for each output column where it comes
  // from, if it is just a column of a relation inside. SELECT * of a relation whose columns are not known here is one
  // output named "*", from that relation's "*": any of its columns, by the same name; and outputs_are_known is false.
  struct Output {
    std::string name;
    std::optional<Column> from;
  };
  std::vector<Output> outputs;
  bool outputs_are_known = false;
  // A condition on an output that has a `from` holds for the rows inside as well: no LIMIT, GROUP BY, window, DISTINCT,
  // set operation, row lock; and a common table expression has no other mention.
  bool is_transparent = false;
  // FOR UPDATE and kin name it (or name nothing and so all).
  bool is_row_locked = false;
};

// `left = right`, where a row of any relation in `holds_for` is part of the answer (or is changed) only if this is
// true. Outer joins are in this set's making: a condition of LEFT JOIN holds for its right side alone.
struct Equality {
  struct Side {
    std::optional<Column> column;
    Value value;  // if no column
  };
  Side left, right;
  RelationSet holds_for = 0;
};

// `column IN (values)` or `column = ANY (array)`; the same rule.
struct Membership {
  Column column;
  std::vector<Value> values;   // IN (...), = ANY (ARRAY[...])
  std::optional<Value> array;  // = ANY ($1), = ANY ('{1,2}')
  RelationSet holds_for = 0;
};

// A column that is read or written, for privileges and for columns that may not go direct.
struct ColumnUse {
  Column column;
  enum class How : std::uint8_t { Read, Inserted, Updated, Returned } how = How::Read;
  // GROUP BY name, where an output column has that name too: it is a column only if the relation has it.
  bool may_be_output = false;
  // It stands behind WHERE (targets, HAVING, ORDER BY) and in no function's arguments: with GROUP BY it must be
  // grouped.
  bool is_bare = false;
};

struct FunctionCall {
  std::string schema;
  std::string name;
  std::vector<Value> arguments;
  bool is_aggregate_syntax = false;  // count(*), FILTER, WITHIN GROUP, DISTINCT inside
  bool has_over = false;
  bool is_in_from = false;
  // A target of the outermost SELECT list that is this call alone (set_config in its usual form); else kNone.
  std::uint16_t target = kNone;
  // Such a target of a SELECT that has nothing else but targets: it is called exactly once, unless one of the others
  // gives several rows, or none.
  bool runs_once = false;
};

struct Insertion {
  std::vector<std::string> columns;  // as written; empty: all, in the table's order
  enum class Source : std::uint8_t { Values, Select, Unnest, DefaultValues } source = Source::Values;
  std::vector<std::vector<Value>> rows;  // Source::Values
  std::vector<Value> arrays;             // Source::Unnest: SELECT * FROM unnest(a, b, ...)
  // Source::Select: what each column gets, as far as it is a plain value or column.
  std::vector<Equality::Side> selected;
  enum class Conflict : std::uint8_t { None, DoNothing, DoUpdate } conflict = Conflict::None;
  std::vector<std::string> conflict_columns;  // empty with conflict_constraint empty: no target
  std::string conflict_constraint;
  bool conflict_is_plain = true;  // false: expressions, a WHERE, a collation or operator class in the target
  enum class Overriding : std::uint8_t { None, User, System } overriding = Overriding::None;
};

struct Assignment {  // of UPDATE, or of ON CONFLICT DO UPDATE
  std::string column;
  Value value;
  bool is_own_value = false;  // SET c = c, or = excluded.c
};

struct Copying {
  bool is_from = false;
  bool is_query = false;   // COPY (SELECT ...) TO
  bool is_stream = false;  // STDIN or STDOUT; else a file or program of the server
  std::vector<std::string> columns;
  bool has_where = false;
  std::vector<std::string> options;  // names only, lower case
};

struct Setting {
  enum class Kind : std::uint8_t {
    Value,
    Default,
    Current,
    Reset,
    ResetAll,
    Transaction,
    Session,
    Constraints
  } kind = Kind::Value;
  std::string name;
  std::vector<Value> values;
  bool is_local = false;
};

struct TransactionControl {
  enum class Kind : std::uint8_t {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Release,
    RollbackTo,
    PrepareTransaction,
    CommitPrepared,
    RollbackPrepared
  } kind = Kind::Begin;
  std::string savepoint;
  std::string isolation;  // as written, lower case; "" if none
  std::optional<bool> read_only;
  std::optional<bool> deferrable;
  bool is_chained = false;
};

struct Statement {
  StatementClass kind = StatementClass::Empty;
  std::int32_t location = 0;  // where it begins in the text, and its length; 0 = to the end
  std::int32_t length = 0;

  std::vector<Relation> relations;
  std::vector<Scope> scopes;
  std::vector<Equality> equalities;
  std::vector<Membership> memberships;
  std::vector<ColumnUse> columns;
  std::vector<FunctionCall> functions;
  std::vector<std::string> operators;   // "=", "OPERATOR(public.+)" as "public.+"; without duplicates
  std::vector<std::string> types;       // of casts and the like, "int8", "public.mood"; without duplicates
  std::vector<std::string> collations;  // without duplicates
  std::vector<Column> group_by;         // plain columns of GROUP BY; expressions and positions: group_by_other
  bool group_by_other = false;
  std::vector<std::string> not_understood;  // node or clause, for people: "MERGE", "GROUPING SETS"

  std::optional<Insertion> insertion;
  std::vector<Assignment> assignments;
  std::optional<Copying> copying;
  std::optional<Setting> setting;
  std::optional<TransactionControl> transaction;  // also the modes of SET TRANSACTION, beside `setting`
  std::string name;  // of a cursor or prepared statement, channel, or object of the DDL where there is one
  // EXPLAIN, DECLARE, PREPARE, COPY (query): the class of the statement inside, whose facts are in with the others.
  StatementClass inner = StatementClass::Empty;
  bool explain_analyzes = false;

  std::uint16_t parameter_count = 0;          // the highest $n
  std::vector<std::uint16_t> parameter_uses;  // [n - 1]: in how many places $n stands
  bool has_returning = false;
  bool has_row_locks = false;  // FOR UPDATE, SHARE, ...
  bool has_skip_locked = false;
  bool has_nowait = false;
  bool has_limit = false;
  bool has_aggregates = false;  // by syntax or by GROUP BY / HAVING; a plain call may be one as well
  bool has_subqueries = false;
  bool has_outer_joins = false;
  bool has_set_operations = false;
  bool has_recursion = false;
  bool modifies_in_with = false;  // data-modifying WITH
  bool has_current_of = false;
  bool has_select_into = false;
  bool is_with_hold = false;     // DECLARE ... WITH HOLD
  bool makes_temporary = false;  // CREATE TEMP ..., SELECT INTO TEMP
  // Some fact depends on the value of a literal (GROUP BY 1): good for this very text only, not for its template.
  bool depends_on_literals = false;
};

// What a text says. Several statements in one simple Query are several entries.
struct Parsed {
  std::vector<Statement> statements;
  // PostgreSQL would not take it: message and byte position (from 1). The server is to say so itself.
  std::string error;
  std::int32_t error_position = 0;
};

}  // namespace lokadb::sql
