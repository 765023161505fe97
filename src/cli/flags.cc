#include "cli/flags.h"

#include <cctype>
#include <charconv>

#include "cli/failure.h"

namespace lokadb::cli {

namespace {

const FlagSpec* find(std::span<const FlagSpec> specs, std::string_view name) {
  for (const FlagSpec& spec : specs)
    if (spec.name == name) return &spec;
  return nullptr;
}

bool is_repeatable(const FlagSpec& spec) { return spec.value.ends_with("…"); }

constexpr double kLongest = 366.0 * 24 * 3600;

// 0: there is no such unit.
double unit_seconds(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  return unit == "ms" ? 0.001 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
}

}  // namespace

Flags::Flags(std::span<const FlagSpec> specs, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (word == "--") {
      rest_.insert(rest_.end(), arguments.begin() + static_cast<long>(i) + 1, arguments.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      rest_.emplace_back(word);
      continue;
    }
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    auto equals = word.find('=');
    std::string name(word.substr(0, equals));
    const FlagSpec* spec = find(specs, name);
    if (spec == nullptr) throw Failure{"unknown flag -" + name, kUsage};
    if (has(name) && !is_repeatable(*spec)) throw Failure{"-" + name + " is given twice", kUsage};
    if (spec->value.empty()) {
      if (equals != std::string_view::npos) throw Failure{"-" + name + " takes no value", kUsage};
      values_[name];
      continue;
    }
    if (equals == std::string_view::npos && ++i == arguments.size())
      throw Failure{"-" + name + " needs a value", kUsage};
    values_[name].push_back(equals == std::string_view::npos ? arguments[i] : std::string(word.substr(equals + 1)));
  }
  for (const FlagSpec& spec : specs)
    if (spec.required && !has(spec.name)) throw Failure{"-" + std::string(spec.name) + " is missing", kUsage};
}

std::string Flags::get(std::string_view name, std::string_view fallback) const {
  auto it = values_.find(std::string(name));
  return it == values_.end() || it->second.empty() ? std::string(fallback) : it->second.back();
}

std::vector<std::string> Flags::all(std::string_view name) const {
  auto it = values_.find(std::string(name));
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

double Flags::seconds(std::string_view name, double fallback) const {
  if (!has(name)) return fallback;
  const std::string text = get(name);
  double value = 0;
  // Neither sign, exponent, "inf" nor "nan": what follows the digits is the unit.
  auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  bool is_number = error == std::errc() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  double factor = is_number ? unit_seconds(unit) : 0;
  if (factor == 0 || value * factor > kLongest)
    throw Failure{
        "-" + std::string(name) + " needs a duration of at most a year, as 90, 500ms, 5m or 1h, not '" + text + "'",
        kUsage};
  return value * factor;
}

long Flags::number(std::string_view name, long fallback, long least, long most) const {
  if (!has(name)) return fallback;
  const std::string text = get(name);
  const char* last = text.data() + text.size();
  long value = 0;
  auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < least || value > most)
    throw Failure{"-" + std::string(name) + " needs a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most) + ", not '" + text + "'",
                  kUsage};
  return value;
}

}  // namespace lokadb::cli
