#include "config/option_pages.h"

#include <string_view>

#include "config/options.h"

namespace lokadb {

namespace {

constexpr std::size_t kSampleWidth = 100;

// For roff: what it would take for a request, an escape or a hyphen to break at.
std::string for_man(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else
      out += c;
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

bool is_enum(std::string_view type) { return type.find(", ") != std::string_view::npos; }

// "seconds", "integer, in bytes", "one of session, transaction, statement"
std::string kind_of(const OptionRow& row) {
  std::string type = option_type_text(row);
  if (is_enum(type)) return "one of " + type;
  if (type == "boolean") return "0 or 1";
  if (type == "seconds") return "a number of seconds, fractions allowed";
  if (type == "list") return "a list, separated by commas or blanks";
  if (!row.unit.empty()) return "an integer, in " + std::string(row.unit);
  return type == "integer" ? "an integer" : "text";
}

std::string_view when_of(const OptionRow& row) {
  return row.applies == Applies::OnReload ? "RELOAD changes it." : "Counts at start only.";
}

std::string default_of(const OptionRow& row) {
  if (row.fallback == nullptr) return "unset";
  return *row.fallback == '\0' ? "empty" : row.fallback;
}

// Breaks at blanks; every line begins with `prefix`.
std::string wrapped(std::string_view text, std::string_view prefix) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kSampleWidth - prefix.size()) {
      end = text.rfind(' ', kSampleWidth - prefix.size());
      if (end == std::string_view::npos) end = text.size();
    }
    out.append(prefix).append(text.substr(0, end)).append("\n");
    text.remove_prefix(end == text.size() ? end : end + 1);
  }
  return out;
}

}  // namespace

std::string options_as_man_text() {
  std::string out;
  for (const auto& row : option_rows()) {
    out += ".TP\n.B " + for_man(row.key) + "\n";
    out += for_man(row.help) + "\n";
    out += for_man("Value: " + kind_of(row) + ".") + "\n";
    out += for_man("Default: " + default_of(row) + ".") + "\n";
    out.append(when_of(row)).append("\n");
  }
  return out;
}

std::string options_as_ini_text() {
  std::string out = "[pgbouncer]\n";
  for (const auto& row : option_rows()) {
    out += "\n" + wrapped(row.help, "; ");
    std::string note = kind_of(row) + "; " + (row.fallback == nullptr ? "unset by default; " : "");
    note += row.applies == Applies::OnReload ? "RELOAD changes it" : "counts at start only";
    out += wrapped("(" + note + ")", "; ");
    out += ";" + std::string(row.key) + " =";
    if (row.fallback != nullptr && *row.fallback != '\0') out.append(" ").append(row.fallback);
    out += "\n";
  }
  return out;
}

}  // namespace lokadb
