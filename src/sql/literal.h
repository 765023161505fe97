// What a literal of a text says.
#pragma once

#include <string>
#include <string_view>

#include "sql/lexer.h"

namespace lokadb::sql {

// Appends the contents of a string, the text of a number, or the digits of B'' and X''. False, and then `out` may have
// got a part: an escape that PostgreSQL refuses, or one that means a character outside ASCII (whose bytes depend on the
// database's encoding). Not for a text with UESCAPE (Lifted::is_exact).
[[nodiscard]] bool decode_literal(std::string_view text, const Token& token, std::string& out);

}  // namespace lokadb::sql
