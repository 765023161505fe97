// Between the text of an option and its member: the half of options.h that is not the table.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "config/options.h"
#include "config/words.h"

namespace lokadb {

namespace {

// One read_value per type of a member. False: `out` is unchanged.
bool read_value(std::string_view text, int& out) {
  auto value = parse_int(text);
  if (value) out = *value;
  return value.has_value();
}

bool read_value(std::string_view text, bool& out) {
  auto value = parse_int(text);
  if (value) out = *value != 0;
  return value.has_value();
}

bool read_value(std::string_view text, std::uint32_t& out) {
  auto value = parse_c_int(text);
  if (!value || *value < 0 || *value > std::numeric_limits<std::uint32_t>::max()) return false;
  out = static_cast<std::uint32_t>(*value);
  return true;
}

bool read_value(std::string_view text, std::optional<int>& out) {
  auto value = parse_int(text);
  if (value) out = *value;
  return value.has_value();
}

bool read_value(std::string_view text, Micros& out) {
  auto value = parse_seconds(text);
  if (value) out = *value;
  return value.has_value();
}

bool read_value(std::string_view text, std::string& out) {
  out = text;
  return true;
}

bool read_value(std::string_view text, OptionalText& out) {
  out = std::string(text);
  return true;
}

bool read_value(std::string_view text, TextList& out) {
  out = split_list(text);
  return true;
}

template <class E>
requires std::is_enum_v<E>
bool read_value(std::string_view text, E& out) {
  auto value = parse_word<E>(text);
  if (value) out = *value;
  return value.has_value();
}

OptionalText show_value(bool value) { return value ? "1" : "0"; }
OptionalText show_value(int value) { return std::to_string(value); }
OptionalText show_value(std::uint32_t value) { return std::to_string(value); }
// PgBouncer has no "unset" for integers: without a default they are 0.
OptionalText show_value(const std::optional<int>& value) { return std::to_string(value.value_or(0)); }
OptionalText show_value(Micros value) { return seconds_text(value); }
OptionalText show_value(const std::string& value) { return value; }
OptionalText show_value(const OptionalText& value) { return value; }

OptionalText show_value(const TextList& value) {
  std::string out;
  for (const auto& part : value) {
    if (!out.empty()) out += ", ";
    out += part;
  }
  return out;
}

template <class E>
requires std::is_enum_v<E> OptionalText show_value(E value) { return std::string(name_of(value)); }

template <class T>
std::string type_text(T Options::*) {
  if constexpr (std::is_same_v<T, bool>) return "boolean";
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::optional<int>>)
    return "integer";
  if constexpr (std::is_same_v<T, Micros>) return "seconds";
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, OptionalText>) return "text";
  if constexpr (std::is_same_v<T, TextList>) return "list";
  std::string out;
  if constexpr (std::is_enum_v<T>) {
    for (auto word : words_of<T>()) out.append(out.empty() ? "" : ", ").append(word);
  }
  return out;
}

}  // namespace

const OptionRow* find_option(std::string_view key) {
  auto rows = option_rows();
  auto row = std::find_if(rows.begin(), rows.end(), [key](const OptionRow& r) { return r.key == key; });
  return row == rows.end() ? nullptr : &*row;
}

bool set_option(Options& options, const OptionRow& row, std::string_view value, Faults& faults) {
  if (row.check && !row.check(value, faults)) return false;
  return std::visit([&](auto member) { return read_value(value, options.*member); }, row.member);
}

void reset_options(Options& options, bool is_reload) {
  for (const auto& row : option_rows()) {
    if (!row.fallback || (is_reload && row.applies == Applies::AtStart)) continue;
    std::visit([&](auto member) { read_value(row.fallback, options.*member); }, row.member);
  }
}

Options default_options() {
  Options options;
  reset_options(options, false);
  return options;
}

OptionalText option_text(const Options& options, const OptionRow& row) {
  return std::visit([&](auto member) { return show_value(options.*member); }, row.member);
}

std::string option_type_text(const OptionRow& row) {
  return std::visit([](auto member) { return type_text(member); }, row.member);
}

std::vector<OptionLine> option_lines(const Options& options) {
  std::vector<OptionLine> lines;
  for (const auto& row : option_rows()) {
    OptionalText fallback;
    if (row.fallback) fallback = row.fallback;
    lines.push_back({row.key, option_text(options, row), std::move(fallback), row.applies == Applies::OnReload});
  }
  return lines;
}

}  // namespace lokadb
