// Walks the parse tree of one statement and notes its facts. Every node type has an explicit case; a node without one
// is an entry in not_understood.
//
// Conditions. A *level* is one SELECT, UPDATE or DELETE with its FROM list. What its WHERE says is true for every row
// that counts, of its own relations and of those in subqueries inside its expressions (a row in there matters only
// through an outer row that passes). So conditions are gathered while the level is read, and get their `holds_for` at
// its end, when all these relations are known. Conditions of outer joins are settled at once, for the side they hold
// for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sql/statement.h"
#include "sql/template_key.h"
#include "sql/tree.h"

namespace lokadb::sql {

class StatementReader {
 public:
  StatementReader(std::string_view text, const std::vector<Token>& literals, Statement& statement)
      : text_(text), literals_(literals), out_(statement) {}

  void read(const Node* node);

 private:
  // Index of an equality, or of a membership.
  struct Condition {
    bool is_membership;
    std::size_t index;
  };
  using Conditions = std::vector<Condition>;

  struct Level {
    std::uint16_t scope = kNone;
    RelationSet members = 0;  // of its FROM
    RelationSet nested = 0;   // of subqueries in its expressions
    Conditions conditions;
    bool is_behind_where = false;         // reading targets, ORDER BY ...
    bool has_calls_behind_where = false;  // one of them may be an aggregate
    bool has_window = false;
  };

  // What a SELECT gives to the query around it.
  struct Outputs {
    std::vector<Relation::Output> columns;
    bool are_known = true;
    bool is_transparent = false;
  };

  // A FROM item.
  struct Part {
    RelationSet members = 0;
    RelationSet nested = 0;
    Conditions conditions;  // true for every row of the join
  };

  struct CommonTable {
    std::string name;
    Outputs outputs;
    bool is_finished = false;
    std::vector<std::uint16_t> mentions;
  };

  // A subquery in an expression, once it has been read.
  struct Subquery {
    Conditions conditions;
    std::vector<Relation::Output> outputs;
    bool row_implies_conditions = false;  // a row comes out only if one went in that met them
    bool is_transparent = false;
  };

  struct Merged {  // by USING
    std::uint16_t scope;
    std::string name;
    Column column;
    RelationSet members;  // of the join
  };

  void not_understood(std::string what);

  // parse_names.cc: scopes, relations, columns
  std::uint16_t add_scope(std::uint16_t parent);
  std::uint16_t add_view_of_scope(std::uint16_t scope, RelationSet visible);
  std::uint16_t add_relation(Relation relation, std::uint16_t scope);
  std::uint16_t read_range_var(const PgQuery__RangeVar* var, std::uint16_t scope, Use use);
  void apply_alias(Relation& relation, const PgQuery__Alias* alias);
  CommonTable* find_common_table(std::string_view name);
  std::optional<std::uint16_t> find_alias(std::uint16_t scope, std::string_view schema, std::string_view alias) const;
  Column resolve(std::uint16_t scope, std::string_view name) const;
  bool is_chain_empty(std::uint16_t scope) const;
  std::optional<Column> column_of(const Node* node) const;
  void use_column(Column column, ColumnUse::How how, bool may_be_output = false);
  void read_column_ref(const PgQuery__ColumnRef* ref);

  // parse_values.cc
  Value value_of(const Node* node) const;
  Value constant(const PgQuery__AConst* constant) const;
  std::string type_name(const PgQuery__TypeName* type) const;
  Equality::Side side_of(const Node* node) const;

  // parse_expression.cc
  void expression(const Node* node);
  void expressions(Nodes list);
  void read_operator(const PgQuery__AExpr* expr);
  void read_call(const PgQuery__FuncCall* call);
  void read_window(const PgQuery__WindowDef* window);
  void read_sublink(const PgQuery__SubLink* link);
  void read_type(const PgQuery__TypeName* type);
  void read_order(Nodes list, const std::vector<Relation::Output>& outputs);
  void read_value_function(const PgQuery__SQLValueFunction* function);
  void note_operator(Nodes name);

  // parse_conditions.cc
  void conjuncts(const Node* node, Conditions& conditions);
  void equality(const Node* left, const Node* right, Conditions& conditions);
  void add_equality(Equality::Side left, Equality::Side right, Conditions& conditions);
  void membership(const PgQuery__AExpr* expr, Conditions& conditions);
  void conjunct_sublink(const PgQuery__SubLink* link, Conditions& conditions);
  void settle(const Conditions& conditions, RelationSet holds_for);
  void end_level(Level& level);

  // parse_from.cc
  Part read_from(const Node* node);
  Part read_join(const PgQuery__JoinExpr* join);
  Part read_derived(const PgQuery__RangeSubselect* derived);
  Part read_range_function(const PgQuery__RangeFunction* function);
  void read_using(const PgQuery__JoinExpr* join, const Part& left, const Part& right, Conditions& conditions);
  void read_from_list(Nodes list);
  void read_where(const Node* where);
  RelationSet read_on(const Node* quals, RelationSet visible, Conditions& conditions);

  // parse_select.cc
  enum class Place { Outermost, Derived, Expression };
  Outputs read_select(const PgQuery__SelectStmt* select, std::uint16_t parent, Place place,
                      Subquery* subquery = nullptr);
  Outputs read_plain_select(const PgQuery__SelectStmt* select, std::uint16_t parent, Place place, Subquery* subquery);
  Outputs read_set_operation(const PgQuery__SelectStmt* select, std::uint16_t parent, Place place);
  Outputs read_values(const PgQuery__SelectStmt* select, std::uint16_t parent, Place place);
  Outputs read_targets(Nodes list, ColumnUse::How how, bool is_outermost);
  void read_group_by(Nodes list, const std::vector<Relation::Output>& outputs);
  void read_locking(Nodes list);
  void lock_rows(std::uint16_t relation);
  std::size_t read_with(const PgQuery__WithClause* with, std::uint16_t parent);
  void read_common_table(const PgQuery__CommonTableExpr* table, std::uint16_t parent, std::size_t slot);
  void end_with(std::size_t visible_before);
  std::string output_name(const Node* node) const;
  Outputs read_statement_inside(const Node* node, std::uint16_t parent, Place place);

  // parse_dml.cc
  Outputs read_insert(const PgQuery__InsertStmt* insert, std::uint16_t parent, bool is_main);
  Outputs read_update(const PgQuery__UpdateStmt* update, std::uint16_t parent, bool is_main);
  Outputs read_delete(const PgQuery__DeleteStmt* statement, std::uint16_t parent, bool is_main);
  void read_merge(const PgQuery__MergeStmt* merge, std::uint16_t parent);
  Outputs read_returning(Nodes list);
  void read_insert_source(const PgQuery__InsertStmt* insert, Insertion& insertion, std::uint16_t parent);
  bool read_unnest(const PgQuery__SelectStmt* select, Insertion& insertion) const;
  std::vector<Assignment> read_conflict(const PgQuery__OnConflictClause* clause, std::uint16_t target,
                                        Insertion& insertion);
  std::vector<Assignment> read_assignments(Nodes list, std::uint16_t target);
  void read_infer(const PgQuery__InferClause* infer, Insertion& insertion);

  // parse_utility.cc
  void read_utility(const Node* node);
  void read_copy(const PgQuery__CopyStmt* copy);
  void read_set(const PgQuery__VariableSetStmt* set);
  void read_transaction(const PgQuery__TransactionStmt* statement);
  void read_modes(Nodes options, TransactionControl& control);
  void read_explain(const PgQuery__ExplainStmt* explain);
  void read_relations(Nodes list, Use use);
  void read_ddl(const Node* node);
  void read_drop(const PgQuery__DropStmt* drop);
  void read_inner(const Node* node);
  void collect_relations(const ProtobufCMessage* message);

  std::string_view text_;
  const std::vector<Token>& literals_;
  Statement& out_;
  Level* level_ = nullptr;
  ColumnUse::How how_ = ColumnUse::How::Read;  // what a column that is met now is used for
  bool is_in_conflict_ = false;                // excluded.c means the row proposed
  int calls_ = 0;                              // function calls around
  int depth_ = 0;                              // of expressions
  std::vector<CommonTable> common_tables_;     // visible now, innermost last
  std::vector<Merged> merged_;
  std::vector<std::uint16_t> scope_owners_;  // per scope: the one it is a view of, or itself
  std::map<const PgQuery__SubLink*, Subquery> subqueries_;
  // Relations first ... last-1 stand inside the derived table that is the key.
  std::map<std::uint16_t, std::pair<std::uint16_t, std::uint16_t>> inside_;
};

// "schema.name" or "name" of a list of strings; pg_catalog is left out.
std::string joined_name(Nodes name);

// "xml_expr": as libpg_query calls the kind of node.
std::string node_name(const Node* node);

}  // namespace lokadb::sql
