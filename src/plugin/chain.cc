#include "plugin/chain.h"

#include <algorithm>
#include <utility>

#include "plugin/abi.h"
#include "plugin/plugin.h"
#include "plugin/verdict.h"

namespace lokadb {

namespace {

BatchVerdict refusal_of(std::uint32_t plugin, PluginOpinion opinion) {
  BatchVerdict v;
  v.kind = LOKADB_REFUSE;
  v.plugin = plugin;
  v.reason = opinion.reason;
  v.sqlstate = std::move(opinion.sqlstate);
  v.message = std::move(opinion.message);
  v.detail = std::move(opinion.detail);
  v.hint = std::move(opinion.hint);
  return v;
}

// A step that would never be run, or not where its plugin thinks: what it was to make sure of would be sure of nothing.
const char* fault_of_step(const BatchStep& step, std::uint32_t kind) {
  if (step.leg == LOKADB_LEG_DIRECT)
    return kind == LOKADB_DIRECT ? "added a step of the direct leg, on which none are run"
                                 : "added a step of the direct leg without saying direct";
  if (kind == LOKADB_CLOUD && step.moment == LOKADB_CHECK) return "added a check without saying direct";
  if (kind == LOKADB_DIRECT && step.moment == LOKADB_BEFORE) return "said direct, and added a step that is no check";
  return nullptr;
}

lokadb_verdict settled_view(const BatchVerdict& v) {
  lokadb_verdict view{};
  view.struct_size = sizeof view;
  view.kind = v.kind;
  view.organization = string_of(v.organization);
  view.target = v.target;
  view.commits = v.commits;
  return view;
}

}  // namespace

PluginChain::~PluginChain() {
  while (!plugins_.empty()) plugins_.pop_back();  // the last one first
}

void* PluginChain::slot_of(const Batch& batch, std::uint32_t plugin) const {
  const std::vector<void*>* slots = batch.context_.slots;
  return slots != nullptr && plugin < slots->size() ? (*slots)[plugin] : nullptr;
}

// A failure of a required plugin is the client's error. What the host found wrong is for the log alone.
BatchVerdict PluginChain::refusal_for(std::uint32_t plugin, PluginFailure failure) const {
  BatchVerdict v;
  v.kind = LOKADB_REFUSE;
  v.plugin = plugin;
  v.sqlstate = std::move(failure.sqlstate);
  v.message = failure.is_told ? std::move(failure.text) : "plugin \"" + plugins_[plugin]->name() + "\" failed";
  return v;
}

// ------------------------------------------------------------------ moments

BatchVerdict PluginChain::begin(Batch& batch) {
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    Plugin& plugin = *plugins_[i];
    batch.calling_plugin_ = i;
    std::size_t facts = batch.facts_.size();
    PluginFailure failure;
    auto opinion = plugin.inspect(batch, slot_of(batch, i), failure);
    if (!opinion) {
      batch.forget_facts_from(facts);
      if (plugin.is_required()) return refusal_for(i, std::move(failure));
    } else if (opinion->kind == LOKADB_REFUSE) {
      plugin.count_reason(opinion->reason);
      plugin.count_refusal();
      return refusal_of(i, std::move(*opinion));
    }
  }
  return go_on(batch);
}

BatchVerdict PluginChain::go_on(Batch& batch) {
  std::vector<RoundOpinion> opinions;
  opinions.reserve(plugins_.size());
  for (;;) {
    opinions.clear();
    std::size_t first_step = batch.steps_.size();
    if (auto refusal = decide_round(batch, opinions)) return std::move(*refusal);
    BatchVerdict verdict = settle(batch, first_step, opinions);
    if (verdict.kind != LOKADB_ASK) return verdict;
    bool has_steps = false;
    for (std::size_t i = first_step; i < batch.steps_.size(); ++i) has_steps |= !batch.steps_[i].is_done;
    if (has_steps) {
      ++batch.rounds_;
      return verdict;
    }
    ++batch.free_rounds_;
  }
}

// Every plugin's opinion; a refusal, by a plugin or because a required one failed, ends the round.
std::optional<BatchVerdict> PluginChain::decide_round(Batch& batch, std::vector<RoundOpinion>& opinions) {
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    Plugin& plugin = *plugins_[i];
    batch.calling_plugin_ = i;
    std::size_t facts = batch.facts_.size(), steps = batch.steps_.size();
    PluginFailure failure;
    auto opinion = plugin.decide(batch, slot_of(batch, i), failure);
    if (opinion) {
      if (std::string fault = fault_of_steps(batch, opinion->kind, facts, steps); !fault.empty()) {
        failure = plugin.failed("decide", {"XX000", std::move(fault), false});
        opinion.reset();
      }
    }
    if (!opinion) {
      batch.forget_facts_from(facts);
      batch.drop_steps_from(steps, i);
      if (plugin.is_required()) return refusal_for(i, std::move(failure));
      continue;
    }
    if (opinion->kind == LOKADB_REFUSE) {
      plugin.count_reason(opinion->reason);
      plugin.count_refusal();
      return refusal_of(i, std::move(*opinion));
    }
    if (opinion->kind == LOKADB_NO_OPINION) batch.drop_steps_from(steps, i);
    opinions.push_back({i, std::move(*opinion)});
  }
  return std::nullopt;
}

// What a plugin asked for in one call of decide must fit its verdict, and end some time.
std::string PluginChain::fault_of_steps(const Batch& batch, std::uint32_t kind, std::size_t first_fact,
                                        std::size_t first_step) {
  bool has_steps = batch.steps_.size() > first_step;
  if (kind == LOKADB_ASK && !has_steps && batch.facts_.size() == first_fact)
    return "asked, but added neither a step nor a fact";
  if (kind == LOKADB_ASK && (has_steps ? batch.rounds_ : batch.free_rounds_) >= kMostRounds)
    return "asked once more after " + std::to_string(kMostRounds) + " rounds";
  if (kind == LOKADB_DIRECT) {
    // Its transaction is open in the cloud, where the client expects its answers to come from, and its errors to count.
    if (batch.context_.transaction_status != 'I') return "said direct inside of a transaction";
    if (batch.context_.ends_in_flush) return "said direct for a batch that ends in Flush";
    if (!batch.context_.is_whole) return "said direct for a batch that is not whole";
  }
  for (std::size_t i = first_step; i < batch.steps_.size(); ++i)
    if (const char* fault = fault_of_step(batch.steps_[i], kind)) return fault;
  return {};
}

// The round's verdict; steps of plugins whose own did not prevail are dropped.
BatchVerdict PluginChain::settle(Batch& batch, std::size_t first_step, const std::vector<RoundOpinion>& opinions) {
  BatchVerdict verdict = combined(opinions);
  if (verdict.kind == LOKADB_REFUSE) {
    plugins_[verdict.plugin]->failed("decide", {verdict.sqlstate, verdict.message, false});
    return verdict;
  }
  for (const RoundOpinion& o : opinions) {
    if (o.opinion.kind != verdict.kind) batch.drop_steps_from(first_step, o.plugin);
    bool is_final = verdict.kind != LOKADB_ASK;
    if (is_final && o.opinion.kind != LOKADB_NO_OPINION) plugins_[o.plugin]->count_reason(o.opinion.reason);
  }
  if (verdict.kind == LOKADB_ASK)
    for (std::size_t i = first_step; i < batch.steps_.size(); ++i) batch.steps_[i].moment = LOKADB_BEFORE;
  return verdict;
}

BatchVerdict PluginChain::review(Batch& batch, const BatchVerdict& settled) {
  lokadb_verdict view = settled_view(settled);
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    Plugin& plugin = *plugins_[i];
    batch.calling_plugin_ = i;
    PluginFailure failure;
    auto opinion = plugin.review(batch, slot_of(batch, i), view, failure);
    if (!opinion) {
      if (plugin.is_required()) return refusal_for(i, std::move(failure));
    } else if (opinion->kind == LOKADB_REFUSE) {
      plugin.count_reason(opinion->reason);
      plugin.count_refusal();
      return refusal_of(i, std::move(*opinion));
    }
  }
  return {};
}

void PluginChain::observe(Batch* batch, std::vector<void*>& slots, const lokadb_event& event) {
  lokadb_event copy = event;
  copy.struct_size = sizeof copy;
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    if (batch != nullptr) batch->calling_plugin_ = i;
    plugins_[i]->observe(batch, i < slots.size() ? slots[i] : nullptr, copy);
  }
}

// ------------------------------------------------------------------ sessions, feeds, figures

std::vector<void*> PluginChain::begin_session(std::string_view database, std::string_view role) {
  std::vector<void*> slots;
  slots.reserve(plugins_.size());
  for (auto& plugin : plugins_) slots.push_back(plugin->session_begin(database, role));
  return slots;
}

void PluginChain::end_session(std::vector<void*>& slots) {
  for (std::size_t i = 0; i < slots.size() && i < plugins_.size(); ++i) plugins_[i]->session_end(slots[i]);
  slots.clear();
}

bool PluginChain::observes() const {
  return std::any_of(plugins_.begin(), plugins_.end(), [](const auto& p) { return p->table().observe != nullptr; });
}

Result<bool> PluginChain::startup(std::string_view name, std::string_view value) const {
  for (const auto& plugin : plugins_) {
    std::optional<PluginFailure> failure;
    if (plugin->startup(name, value, failure)) return true;
    if (!failure || (!failure->is_told && !plugin->is_required())) continue;
    std::string text = failure->is_told ? failure->text : "plugin \"" + plugin->name() + "\" failed";
    return Error{SqlState(failure->sqlstate), Severity::Fatal, text, failure->text};
  }
  return false;
}

std::optional<PluginChain::SavedSession> PluginChain::save_session(const std::vector<void*>& slots) const {
  SavedSession saved;
  for (std::size_t i = 0; i < plugins_.size() && i < slots.size(); ++i) {
    std::string state;
    if (!plugins_[i]->session_save(slots[i], state)) return std::nullopt;
    if (!state.empty()) saved.emplace_back(plugins_[i]->name(), std::move(state));
  }
  return saved;
}

bool PluginChain::restore_session(std::vector<void*>& slots, const SavedSession& saved) const {
  for (const auto& [name, state] : saved) {
    auto it = std::find_if(plugins_.begin(), plugins_.end(), [&](const auto& p) { return p->name() == name; });
    if (it == plugins_.end()) continue;  // not loaded any more
    if (!(*it)->session_restore(slots[static_cast<std::size_t>(it - plugins_.begin())], state)) return false;
  }
  return true;
}

const lokadb_reason* PluginChain::reason(const BatchVerdict& verdict) const {
  if (verdict.plugin >= plugins_.size()) return nullptr;
  const lokadb_plugin& table = plugins_[verdict.plugin]->table();
  return verdict.reason < table.reason_count ? &table.reasons[verdict.reason] : nullptr;
}

const std::string& PluginChain::name(std::uint32_t plugin) const { return plugins_.at(plugin)->name(); }

std::vector<PluginChain::FeedWish> PluginChain::feeds(std::string_view database) {
  constexpr std::uint32_t kDefaultHeartbeat = 5000;  // milliseconds
  std::lock_guard guard(news_);
  std::vector<FeedWish> wishes;
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    lokadb_feed feed;
    if (!plugins_[i]->feed(database, feed)) continue;
    wishes.push_back({i, std::string(view_of(feed.user)), std::string(view_of(feed.password)),
                      std::string(view_of(feed.channel)), std::string(view_of(feed.query)),
                      feed.heartbeat_ms != 0 ? feed.heartbeat_ms : kDefaultHeartbeat});
  }
  return wishes;
}

void PluginChain::feed_changed(std::uint32_t plugin, std::string_view database, std::string_view value, bool is_fresh) {
  std::lock_guard guard(news_);
  plugins_.at(plugin)->feed_changed(database, value, is_fresh);
}

std::vector<PluginChain::Show> PluginChain::shows() const {
  std::vector<Show> all;
  for (std::uint32_t i = 0; i < plugins_.size(); ++i) {
    const lokadb_plugin& table = plugins_[i]->table();
    for (std::uint32_t n = 0; n < table.show_count; ++n)
      all.push_back({table.shows[n].name, table.shows[n].columns, i, n});
  }
  return all;
}

Result<PluginChain::Rows> PluginChain::rows_of(const Show& show) {
  std::lock_guard guard(news_);
  PluginRows rows;
  for (std::size_t end = show.columns.find(','); end != show.columns.npos; end = show.columns.find(',', end + 1))
    rows.types += show.columns[end - 1];
  rows.types += show.columns.back();
  Plugin& plugin = *plugins_.at(show.plugin);
  if (auto failure = plugin.show(show.number, rows))
    return Error{SqlState(failure->sqlstate), Severity::Error, "plugin \"" + plugin.name() + "\" failed",
                 failure->text};
  return std::move(rows.rows);
}

std::vector<PluginChain::SessionState> PluginChain::session_states(const std::vector<void*>& slots) {
  std::vector<SessionState> all;
  std::lock_guard guard(news_);
  for (std::size_t i = 0; i < plugins_.size() && i < slots.size(); ++i) {
    Plugin& plugin = *plugins_[i];
    lokadb_session_state state;
    if (!plugin.session_state(slots[i], state)) continue;
    bool is_off = state.is_off != 0;
    const lokadb_plugin& table = plugin.table();
    all.push_back({plugin.name(), is_off,
                   is_off && state.reason < table.reason_count ? &table.reasons[state.reason] : nullptr,
                   told_text(view_of(state.details))});
  }
  return all;
}

std::vector<PluginFigures> PluginChain::figures() const {
  std::vector<PluginFigures> all;
  for (const auto& plugin : plugins_) all.push_back(plugin->figures());
  return all;
}

}  // namespace lokadb
