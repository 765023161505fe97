// SQL PREPARE, EXECUTE and DEALLOCATE, of which the name is replaced by the one that servers know a statement by, as in
// Parse and Bind.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lokadb {

struct NamedStatement {
  std::string name;   // as the server stores it
  std::size_t begin;  // where it stands in the text, quotes included
  std::size_t end;
};

// If `sql` is PREPARE name [(types)] AS statement, and nothing else follows. nullopt too for a name that would be cut
// off.
std::optional<NamedStatement> prepared_by(std::string_view sql);
// What stands behind the name in such a text, without the end of the statement.
std::string_view rest_of_prepare(std::string_view sql, const NamedStatement& made);

// If `sql` begins with EXECUTE name, or with EXPLAIN ... EXECUTE name.
std::optional<NamedStatement> executed_by(std::string_view sql);

// The name if `sql` is nothing but DEALLOCATE [PREPARE] name. nullopt for ALL and several statements.
std::optional<std::string> deallocated_name(std::string_view sql);

}  // namespace lokadb
