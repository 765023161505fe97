// The one SQL statement that is understood: DEALLOCATE of a single name, which drivers send for statements that they
// prepared by message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lokadb {

// The name if `sql` is nothing but DEALLOCATE [PREPARE] name, by PostgreSQL's rules for identifiers (manual, "Lexical
// Structure"). nullopt for anything else: ALL, several statements, comments, names that would be cut off.
std::optional<std::string> deallocated_name(std::string_view sql);

}  // namespace lokadb
