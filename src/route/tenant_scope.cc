#include "route/tenant_scope.h"

#include <nlohmann/json.hpp>

namespace lokadb::route {

namespace {
// Of one transaction. To go back to one beyond loses track of the value.
constexpr std::size_t kMostSavepoints = 10000;
}  // namespace

std::string_view TenantScope::value() const {
  if (now_.local) return *now_.local;
  return now_.session ? std::string_view(*now_.session) : std::string_view(default_);
}

void TenantScope::set(std::optional<std::string> value, bool is_local) {
  now_.is_known = true;
  if (is_local) {
    now_.local = value ? std::move(value) : default_;
    return;
  }
  now_.session = std::move(value);
  now_.local.reset();
}

// The innermost one of the name; its number, or how many there are.
std::size_t TenantScope::find(std::string_view savepoint) const {
  for (std::size_t i = savepoints_.size(); i-- > 0;)
    if (savepoints_[i].name == savepoint) return i;
  return savepoints_.size();
}

void TenantScope::apply(const NamingEffect& effect, bool has_committed) {
  using Kind = NamingEffect::Kind;
  switch (effect.kind) {
    case Kind::None:
      return;
    case Kind::Set:
      return set(effect.text, effect.is_local);
    case Kind::Default:
      return set(std::nullopt, effect.is_local);
    case Kind::Current:
      if (is_known()) set(std::string(value()), effect.is_local);
      return;
    case Kind::Commit:
      return transaction_ended(has_committed);
    case Kind::Rollback:
      return transaction_ended(false);
    case Kind::Savepoint:
      if (savepoints_.size() < kMostSavepoints) savepoints_.push_back({effect.text, now_});
      return;
    case Kind::Release:
      savepoints_.erase(savepoints_.begin() + static_cast<std::ptrdiff_t>(find(effect.text)), savepoints_.end());
      return;
    case Kind::RollbackTo: {
      std::size_t at = find(effect.text);
      if (at == savepoints_.size()) return lose_track();
      now_ = savepoints_[at].before;
      savepoints_.erase(savepoints_.begin() + static_cast<std::ptrdiff_t>(at) + 1, savepoints_.end());
      return;
    }
    case Kind::Unseen:
      now_.is_unseen = true;
      return;
    case Kind::NotUnderstood:
      return lose_track();
  }
}

void TenantScope::transaction_ended(bool has_committed) {
  if (has_committed)
    committed_ = now_.session;
  else
    now_.session = committed_;
  now_.local.reset();
  now_.is_known = true;
  now_.is_unseen = false;
  savepoints_.clear();
}

bool TenantScope::is_initial() const {
  return now_ == Level{} && !committed_ && savepoints_.empty() && default_.empty();
}

// ------------------------------------------------------------------ as text

namespace {
using Json = nlohmann::json;

Json of(const std::optional<std::string>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<std::string> text_in(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}
}  // namespace

std::string TenantScope::to_text() const {
  auto level = [](const Level& l) { return Json::array({of(l.session), of(l.local), l.is_known, l.is_unseen}); };
  Json savepoints = Json::array();
  for (const Savepoint& s : savepoints_) savepoints.push_back(Json::array({s.name, level(s.before)}));
  Json all = Json::array({default_, level(now_), of(committed_), savepoints});
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<TenantScope> TenantScope::from_text(std::string_view text) {
  Json all = Json::parse(text, nullptr, false);
  if (!all.is_array() || all.size() != 4 || !all[0].is_string() || !all[3].is_array()) return std::nullopt;
  auto is_level = [](const Json& l) { return l.is_array() && l.size() == 4 && l[2].is_boolean() && l[3].is_boolean(); };
  auto level = [](const Json& l) { return Level{text_in(l[0]), text_in(l[1]), l[2].get<bool>(), l[3].get<bool>()}; };
  if (!is_level(all[1])) return std::nullopt;
  TenantScope scope;
  scope.default_ = all[0].get<std::string>();
  scope.now_ = level(all[1]);
  scope.committed_ = text_in(all[2]);
  for (const Json& s : all[3]) {
    if (!s.is_array() || s.size() != 2 || !s[0].is_string() || !is_level(s[1])) return std::nullopt;
    scope.savepoints_.push_back({s[0].get<std::string>(), level(s[1])});
  }
  return scope;
}

}  // namespace lokadb::route
