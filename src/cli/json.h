// JSON for programs (-json).
#pragma once

#include <string>
#include <string_view>

namespace lokadb::cli {

std::string json_text(std::string_view text);

// One JSON array from a list; write() makes the JSON of an element.
template <class List, class Write>
std::string json_array(const List& list, Write&& write) {
  std::string out = "[";
  for (const auto& element : list) out += (out.size() > 1 ? "," : "") + write(element);
  return out + "]";
}

// An object, member by member in the order of the calls.
class JsonObject {
 public:
  JsonObject& text(std::string_view name, std::string_view value) { return raw(name, json_text(value)); }
  JsonObject& text_or_null(std::string_view name, std::string_view value);  // null: empty
  JsonObject& flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  JsonObject& seconds(std::string_view name, double value);
  JsonObject& raw(std::string_view name, std::string_view json);  // a number, or JSON already
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace lokadb::cli
