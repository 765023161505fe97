#include "cli/json.h"

#include <cstdio>

namespace lokadb::cli {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

JsonObject& JsonObject::text_or_null(std::string_view name, std::string_view value) {
  return raw(name, value.empty() ? "null" : json_text(value));
}

JsonObject& JsonObject::seconds(std::string_view name, double value) {
  char number[32];
  std::snprintf(number, sizeof number, "%.3f", value);
  return raw(name, number);
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  members_ += (members_.empty() ? "" : ",") + json_text(name) + ":" + std::string(json);
  return *this;
}

}  // namespace lokadb::cli
