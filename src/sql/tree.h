// Short names for libpg_query's parse tree. Included by the parser's own files only.
#pragma once

#include <pg_query/pg_query.pb-c.h>

#include <span>
#include <string_view>

namespace lokadb::sql {

using Node = PgQuery__Node;
using Nodes = std::span<Node* const>;

inline Nodes nodes(Node** first, std::size_t count) { return {first, count}; }

inline bool is_node(const Node* node, PgQuery__Node__NodeCase kind) { return node && node->node_case == kind; }

// The text of a String node, else "".
inline std::string_view string_of(const Node* node) {
  return is_node(node, PG_QUERY__NODE__NODE_STRING) ? node->string->sval : std::string_view();
}

}  // namespace lokadb::sql

// The list `name` of a message: its pointer and count are two members.
#define LOKADB_NODES(message, name) ::lokadb::sql::nodes((message)->name, (message)->n_##name)
