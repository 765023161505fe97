#include "found_keys.h"

#include <algorithm>

#include "router.h"

namespace lokadb::router {

FoundKeys::FoundKeys(lokadb_batch* batch, const BatchState& state) : state_(state), answers_(state.wanted.size()) {
  if (state.wanted.empty()) return;
  std::uint32_t count = host->fact_count(batch);
  for (std::uint32_t i = 0; i < count; ++i) {
    lokadb_fact fact{};
    fact.struct_size = sizeof fact;
    if (host->fact(batch, i, &fact) == LOKADB_OK && fact.kind == LOKADB_FACT_KEY_FOUND) take(fact);
  }
  is_complete_ = std::all_of(answers_.begin(), answers_.end(),
                             [](const Found& found) { return found.answer != Answer::NotAsked; });
}

FoundKeys::Found FoundKeys::find(const catalog::Table& table, std::string_view key) const {
  auto it = state_.wanted_index.find({table.quoted, key});
  return it != state_.wanted_index.end() ? answers_[it->second] : Found{};
}

// Wanted facts were published in order.
void FoundKeys::take(const lokadb_fact& fact) {
  auto it = std::lower_bound(state_.wanted.begin(), state_.wanted.end(), fact.about,
                             [](const auto& wanted, std::uint32_t about) { return wanted.fact < about; });
  if (it == state_.wanted.end() || it->fact != fact.about) return;
  std::string_view organization = view(fact.value);
  answers_[static_cast<std::size_t>(it - state_.wanted.begin())] =
      organization.empty() ? Found{Answer::Nobody, {}} : Found{Answer::Found, organization};
}

}  // namespace lokadb::router
