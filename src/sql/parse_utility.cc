// Everything that is not a query: settings, transactions, cursors, COPY, EXPLAIN; the rest by its class.
#include <array>
#include <utility>

#include "base/text.h"
#include "sql/reader.h"

namespace lokadb::sql {
namespace {

std::string text_of_constant(const Node* node) {
  if (!is_node(node, PG_QUERY__NODE__NODE_A_CONST)) return {};
  if (node->a_const->val_case != PG_QUERY__A__CONST__VAL_SVAL) return {};
  return node->a_const->sval->sval;
}

bool is_true(const Node* node) {
  if (!is_node(node, PG_QUERY__NODE__NODE_A_CONST)) return false;
  return node->a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL && node->a_const->ival->ival != 0;
}

StatementClass class_of(const Node* node) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_SELECT_STMT:
      return StatementClass::Select;
    case PG_QUERY__NODE__NODE_INSERT_STMT:
      return StatementClass::Insert;
    case PG_QUERY__NODE__NODE_UPDATE_STMT:
      return StatementClass::Update;
    case PG_QUERY__NODE__NODE_DELETE_STMT:
      return StatementClass::Delete;
    case PG_QUERY__NODE__NODE_MERGE_STMT:
      return StatementClass::Merge;
    case PG_QUERY__NODE__NODE_COPY_STMT:
      return StatementClass::Copy;
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT:
    case PG_QUERY__NODE__NODE_CONSTRAINTS_SET_STMT:
      return StatementClass::Set;
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
      return StatementClass::Transaction;
    case PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT:
    case PG_QUERY__NODE__NODE_FETCH_STMT:
    case PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT:
      return StatementClass::Cursor;
    case PG_QUERY__NODE__NODE_PREPARE_STMT:
    case PG_QUERY__NODE__NODE_EXECUTE_STMT:
    case PG_QUERY__NODE__NODE_DEALLOCATE_STMT:
      return StatementClass::Prepare;
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
      return StatementClass::Explain;
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
      return StatementClass::Show;
    case PG_QUERY__NODE__NODE_LOCK_STMT:
      return StatementClass::Lock;
    case PG_QUERY__NODE__NODE_TRUNCATE_STMT:
      return StatementClass::Truncate;
    case PG_QUERY__NODE__NODE_CALL_STMT:
    case PG_QUERY__NODE__NODE_DO_STMT:
      return StatementClass::Call;
    case PG_QUERY__NODE__NODE_DISCARD_STMT:
      return StatementClass::Discard;
    case PG_QUERY__NODE__NODE_NOTIFY_STMT:
    case PG_QUERY__NODE__NODE_LISTEN_STMT:
    case PG_QUERY__NODE__NODE_UNLISTEN_STMT:
      return StatementClass::Notify;
    case PG_QUERY__NODE__NODE_VACUUM_STMT:
    case PG_QUERY__NODE__NODE_CLUSTER_STMT:
    case PG_QUERY__NODE__NODE_REINDEX_STMT:
    case PG_QUERY__NODE__NODE_CHECK_POINT_STMT:
    case PG_QUERY__NODE__NODE_LOAD_STMT:
      return StatementClass::Utility;
    default:
      return StatementClass::Ddl;
  }
}

}  // namespace

std::string node_name(const Node* node) {
  if (!node) return "nothing";
  const auto* field = protobuf_c_message_descriptor_get_field(&pg_query__node__descriptor, node->node_case);
  return field ? field->name : "unknown node";
}

void StatementReader::read(const Node* node) {
  if (!node || node->node_case == PG_QUERY__NODE__NODE__NOT_SET) return not_understood("empty statement");
  out_.kind = class_of(node);
  switch (out_.kind) {
    case StatementClass::Select:
    case StatementClass::Insert:
    case StatementClass::Update:
    case StatementClass::Delete:
      read_statement_inside(node, kNone, Place::Outermost);
      break;
    case StatementClass::Merge:
      read_merge(node->merge_stmt, kNone);
      break;
    default:
      read_utility(node);
  }
}

// The statement inside EXPLAIN and its like.
void StatementReader::read_inner(const Node* node) {
  if (!node) return not_understood("no statement inside");
  out_.inner = class_of(node);
  if (out_.inner == StatementClass::Merge)
    read_merge(node->merge_stmt, kNone);
  else if (out_.inner <= StatementClass::Delete)
    read_statement_inside(node, kNone, Place::Outermost);
  else
    read_utility(node);
}

void StatementReader::read_utility(const Node* node) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COPY_STMT:
      return read_copy(node->copy_stmt);
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT:
      return read_set(node->variable_set_stmt);
    case PG_QUERY__NODE__NODE_CONSTRAINTS_SET_STMT:
      out_.setting.emplace().kind = Setting::Kind::Constraints;
      return;
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
      return read_transaction(node->transaction_stmt);
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
      return read_explain(node->explain_stmt);
    case PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT: {
      constexpr int kWithHold = 0x20;
      out_.name = node->declare_cursor_stmt->portalname;
      out_.is_with_hold = (node->declare_cursor_stmt->options & kWithHold) != 0;
      return read_inner(node->declare_cursor_stmt->query);
    }
    case PG_QUERY__NODE__NODE_FETCH_STMT:
      out_.name = node->fetch_stmt->portalname;
      return;
    case PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT:
      out_.name = node->close_portal_stmt->portalname;
      return;
    case PG_QUERY__NODE__NODE_PREPARE_STMT:
      out_.name = node->prepare_stmt->name;
      for (const Node* type : LOKADB_NODES(node->prepare_stmt, argtypes))
        if (is_node(type, PG_QUERY__NODE__NODE_TYPE_NAME)) read_type(type->type_name);
      return read_inner(node->prepare_stmt->query);
    case PG_QUERY__NODE__NODE_EXECUTE_STMT:
      out_.name = node->execute_stmt->name;
      return expressions(LOKADB_NODES(node->execute_stmt, params));
    case PG_QUERY__NODE__NODE_DEALLOCATE_STMT:
      out_.name = node->deallocate_stmt->name;
      return;
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
      out_.name = lower(node->variable_show_stmt->name);
      return;
    case PG_QUERY__NODE__NODE_LOCK_STMT:
      out_.has_nowait = node->lock_stmt->nowait;
      return read_relations(LOKADB_NODES(node->lock_stmt, relations), Use::Lock);
    case PG_QUERY__NODE__NODE_TRUNCATE_STMT:
      return read_relations(LOKADB_NODES(node->truncate_stmt, relations), Use::Truncate);
    case PG_QUERY__NODE__NODE_CALL_STMT:
      if (node->call_stmt->funccall) read_call(node->call_stmt->funccall);
      return;
    case PG_QUERY__NODE__NODE_NOTIFY_STMT:
      out_.name = node->notify_stmt->conditionname;
      return;
    case PG_QUERY__NODE__NODE_LISTEN_STMT:
      out_.name = node->listen_stmt->conditionname;
      return;
    case PG_QUERY__NODE__NODE_UNLISTEN_STMT:
      out_.name = node->unlisten_stmt->conditionname;
      return;
    case PG_QUERY__NODE__NODE_DO_STMT:
    case PG_QUERY__NODE__NODE_CHECK_POINT_STMT:
    case PG_QUERY__NODE__NODE_LOAD_STMT:
      return;
    case PG_QUERY__NODE__NODE_DISCARD_STMT:
      static constexpr std::array<const char*, 5> kTargets = {"", "all", "plans", "sequences", "temp"};
      if (static_cast<std::size_t>(node->discard_stmt->target) < kTargets.size())
        out_.name = kTargets[static_cast<std::size_t>(node->discard_stmt->target)];
      return;
    default:
      return read_ddl(node);
  }
}

void StatementReader::read_relations(Nodes list, Use use) {
  for (const Node* node : list) {
    if (is_node(node, PG_QUERY__NODE__NODE_RANGE_VAR))
      read_range_var(node->range_var, kNone, use);
    else
      not_understood(node_name(node));
  }
}

void StatementReader::read_copy(const PgQuery__CopyStmt* copy) {
  Copying copying;
  copying.is_from = copy->is_from;
  copying.is_query = copy->query != nullptr;
  copying.is_stream = *copy->filename == '\0' && !copy->is_program;
  copying.has_where = copy->where_clause != nullptr;
  for (const Node* column : LOKADB_NODES(copy, attlist)) copying.columns.emplace_back(string_of(column));
  for (const Node* option : LOKADB_NODES(copy, options))
    if (is_node(option, PG_QUERY__NODE__NODE_DEF_ELEM)) copying.options.push_back(lower(option->def_elem->defname));
  if (copy->relation) {
    Level level;
    level.scope = add_scope(kNone);
    level_ = &level;
    std::uint16_t relation = read_range_var(copy->relation, level.scope, copy->is_from ? Use::CopyFrom : Use::CopyTo);
    auto how = copy->is_from ? ColumnUse::How::Inserted : ColumnUse::How::Read;
    for (const std::string& column : copying.columns) use_column({relation, level.scope, column}, how);
    if (copying.columns.empty()) use_column({relation, level.scope, "*"}, how);
    expression(copy->where_clause);
    level_ = nullptr;
  }
  if (copy->query) read_inner(copy->query);
  out_.copying = std::move(copying);
}

void StatementReader::read_modes(Nodes options, TransactionControl& control) {
  for (const Node* node : options) {
    if (!is_node(node, PG_QUERY__NODE__NODE_DEF_ELEM)) {
      not_understood("transaction mode");
      continue;
    }
    std::string_view name = node->def_elem->defname;
    if (name == "transaction_isolation")
      control.isolation = text_of_constant(node->def_elem->arg);
    else if (name == "transaction_read_only")
      control.read_only = is_true(node->def_elem->arg);
    else if (name == "transaction_deferrable")
      control.deferrable = is_true(node->def_elem->arg);
    else
      not_understood("transaction mode");
  }
}

void StatementReader::read_transaction(const PgQuery__TransactionStmt* statement) {
  using Kind = TransactionControl::Kind;
  static constexpr Kind kKinds[] = {
      Kind::Begin,
      Kind::Begin,
      Kind::Begin,
      Kind::Commit,
      Kind::Rollback,
      Kind::Savepoint,
      Kind::Release,
      Kind::RollbackTo,
      Kind::PrepareTransaction,
      Kind::CommitPrepared,
      Kind::RollbackPrepared,
  };
  auto kind = static_cast<std::size_t>(statement->kind);
  if (kind == 0 || kind >= std::size(kKinds)) return not_understood("transaction statement");
  TransactionControl control;
  control.kind = kKinds[kind];
  control.savepoint = statement->savepoint_name;
  control.is_chained = statement->chain;
  read_modes(LOKADB_NODES(statement, options), control);
  out_.transaction = std::move(control);
}

void StatementReader::read_set(const PgQuery__VariableSetStmt* set) {
  Setting setting;
  setting.name = lower(set->name);
  setting.is_local = set->is_local;
  switch (set->kind) {
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_VALUE:
      setting.kind = Setting::Kind::Value;
      break;
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_DEFAULT:
      setting.kind = Setting::Kind::Default;
      break;
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_CURRENT:
      setting.kind = Setting::Kind::Current;
      break;
    case PG_QUERY__VARIABLE_SET_KIND__VAR_RESET:
      setting.kind = Setting::Kind::Reset;
      break;
    case PG_QUERY__VARIABLE_SET_KIND__VAR_RESET_ALL:
      setting.kind = Setting::Kind::ResetAll;
      break;
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_MULTI:
      setting.kind = setting.name == "session characteristics" ? Setting::Kind::Session : Setting::Kind::Transaction;
      if (setting.name == "transaction snapshot")
        not_understood("SET TRANSACTION SNAPSHOT");
      else
        read_modes(LOKADB_NODES(set, args), out_.transaction.emplace());
      out_.setting = std::move(setting);
      return;
    default:
      return not_understood("SET");
  }
  for (const Node* node : LOKADB_NODES(set, args)) {
    Value value = value_of(node);
    if (std::string word = text_of_constant(node); value.kind == Value::Kind::Other && !word.empty()) {
      value.kind = Value::Kind::Word;
      value.word = std::move(word);
    }
    setting.values.push_back(std::move(value));
  }
  out_.setting = std::move(setting);
}

void StatementReader::read_explain(const PgQuery__ExplainStmt* explain) {
  for (const Node* node : LOKADB_NODES(explain, options)) {
    if (!is_node(node, PG_QUERY__NODE__NODE_DEF_ELEM)) {
      not_understood("EXPLAIN");
      continue;
    }
    if (!iequals(node->def_elem->defname, "analyze")) continue;
    std::string value;
    const Node* argument = node->def_elem->arg;
    out_.explain_analyzes = true;
    if (!argument) continue;
    if (is_node(argument, PG_QUERY__NODE__NODE_STRING)) value = argument->string->sval;
    if (iequals(value, "false") || iequals(value, "off")) out_.explain_analyzes = false;
    out_.depends_on_literals = true;  // (ANALYZE 0), (ANALYZE 'off')
  }
  read_inner(explain->query);
}

void StatementReader::read_ddl(const Node* node) {
  const PgQuery__RangeVar* object = nullptr;
  if (is_node(node, PG_QUERY__NODE__NODE_CREATE_STMT)) object = node->create_stmt->relation;
  if (is_node(node, PG_QUERY__NODE__NODE_VIEW_STMT)) object = node->view_stmt->view;
  if (is_node(node, PG_QUERY__NODE__NODE_CREATE_SEQ_STMT)) object = node->create_seq_stmt->sequence;
  if (is_node(node, PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT) && node->create_table_as_stmt->into)
    object = node->create_table_as_stmt->into->rel;
  if (is_node(node, PG_QUERY__NODE__NODE_ALTER_TABLE_STMT)) object = node->alter_table_stmt->relation;
  if (object) {
    out_.name = object->relname;
    std::string_view persistence = object->relpersistence;
    std::string_view schema = object->schemaname;
    out_.makes_temporary = persistence == "t" || schema.starts_with("pg_temp");
  }
  if (is_node(node, PG_QUERY__NODE__NODE_DROP_STMT)) read_drop(node->drop_stmt);
  collect_relations(&node->base);
}

// Objects stand there as lists of strings.
void StatementReader::read_drop(const PgQuery__DropStmt* drop) {
  switch (drop->remove_type) {
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABLE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_VIEW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_INDEX:
      break;
    default:
      return;
  }
  for (const Node* object : LOKADB_NODES(drop, objects)) {
    if (!is_node(object, PG_QUERY__NODE__NODE_LIST) || object->list->n_items == 0) continue;
    Nodes names = LOKADB_NODES(object->list, items);
    Relation relation;
    relation.name = relation.alias = string_of(names.back());
    if (names.size() > 1) relation.schema = string_of(names[names.size() - 2]);
    if (names.size() > 2) relation.catalog = string_of(names.front());
    relation.use = Use::Other;
    add_relation(std::move(relation), kNone);
  }
}

// Every relation that a statement names anywhere, by the tree's own description of itself.
void StatementReader::collect_relations(const ProtobufCMessage* message) {
  if (!message || depth_ >= 400) {
    if (message) not_understood("deep nesting");
    return;
  }
  if (message->descriptor == &pg_query__range_var__descriptor) {
    read_range_var(reinterpret_cast<const PgQuery__RangeVar*>(message), kNone, Use::Other);
    return;
  }
  ++depth_;
  const auto* bytes = reinterpret_cast<const char*>(message);
  for (unsigned i = 0; i < message->descriptor->n_fields; ++i) {
    const ProtobufCFieldDescriptor& field = message->descriptor->fields[i];
    if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
    const char* member = bytes + field.offset;
    if (field.label == PROTOBUF_C_LABEL_REPEATED) {
      auto count = *reinterpret_cast<const std::size_t*>(bytes + field.quantifier_offset);
      auto* items = *reinterpret_cast<ProtobufCMessage* const* const*>(member);
      for (std::size_t k = 0; k < count; ++k) collect_relations(items[k]);
      continue;
    }
    bool is_choice = (field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (is_choice && *reinterpret_cast<const std::uint32_t*>(bytes + field.quantifier_offset) != field.id) continue;
    collect_relations(*reinterpret_cast<ProtobufCMessage* const*>(member));
  }
  --depth_;
}

}  // namespace lokadb::sql
