#include "config/ident.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "config/line_words.h"

namespace lokadb {

namespace {

struct Line {
  std::string map;
  IdentEntry entry;
};

// nullopt: not a line of three names.
std::optional<Line> parse_line(LineWords& words) {
  LineWord map = words.take(), system = words.take(), user = words.take();
  bool is_good = map.is_name() && system.is_name() && user.is_name() && words.peek().is_end() && !words.is_broken();
  if (!is_good) return std::nullopt;
  bool is_any = user.is("all");
  return Line{std::move(map.text), {std::move(system.text), is_any, is_any ? std::string() : std::move(user.text)}};
}

}  // namespace

bool lets_in(const std::vector<std::string>& system_names, std::string_view user, const IdentMap* map) {
  auto is_proven = [&system_names](std::string_view name) {
    return std::find(system_names.begin(), system_names.end(), name) != system_names.end();
  };
  if (map == nullptr) return is_proven(user);
  return std::any_of(map->begin(), map->end(),
                     [&](const IdentEntry& entry) { return is_proven(entry.system_name) && entry.lets_in_as(user); });
}

IdentText parse_ident(std::string_view text) {
  std::map<std::string, IdentMap, std::less<>> maps;
  IdentText result;
  for (int number = 1; !text.empty(); ++number) {
    LineWords words(take_line(text));
    if (words.peek().is_end() && !words.is_broken()) continue;
    if (auto line = parse_line(words))
      maps[line->map].push_back(std::move(line->entry));
    else
      result.warnings.push_back("could not parse ident config line " + std::to_string(number));
  }
  for (auto& [name, map] : maps) result.maps.emplace(name, std::make_shared<const IdentMap>(std::move(map)));
  return result;
}

}  // namespace lokadb
