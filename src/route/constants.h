// The values of a statement, brought into canonical form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "route/analysis.h"
#include "route/decide.h"

namespace lokadb::route {

// What a value is when it is compared with a column of the type.
struct Constant {
  enum class Kind : std::uint8_t {
    Unknown,  // only the server knows
    Null,     // equal to nothing
    Text,     // canonical
  } kind = Kind::Unknown;
  std::string text{};
};

Constant constant(const Analysis& analysis, const sql::Value& value, catalog::ValueType type, const Values& values,
                  bool has_utf8);

// All values of a source; an array is taken apart, without its NULLs. nullopt: one is unknown.
std::optional<std::vector<Constant>> constants(const Analysis& analysis, const Source& source, const Values& values,
                                               bool has_utf8);

}  // namespace lokadb::route
