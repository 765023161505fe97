#include "plugin/verdict.h"

#include <algorithm>

#include "base/text.h"
#include "plugin/abi.h"

namespace lokadb {

namespace {

bool is_string(const lokadb_string& s) { return s.data != nullptr || s.size == 0; }

std::string read_refusal(const lokadb_verdict& verdict, PluginOpinion& opinion) {
  std::string_view state(verdict.sqlstate, std::find(verdict.sqlstate, std::end(verdict.sqlstate), '\0'));
  if (!is_error_sqlstate(state)) return "refused without a SQLSTATE, or with one that is none";
  if (view_of(verdict.message).empty()) return "refused without a message";
  opinion.sqlstate = state;
  opinion.message = told_text(view_of(verdict.message));
  opinion.detail = told_text(view_of(verdict.detail));
  opinion.hint = told_text(view_of(verdict.hint));
  return {};
}

std::string read_place(const Batch& batch, const lokadb_verdict& verdict, PluginOpinion& opinion) {
  opinion.organization = view_of(verdict.organization);
  if (verdict.commits > LOKADB_COMMITS_TRANSACTION) return format("said that it commits %u", verdict.commits);
  opinion.commits = verdict.commits;
  if (verdict.kind == LOKADB_CLOUD) return {};
  if (opinion.organization.empty()) return "said direct without an organization";
  if (verdict.target >= batch.targets().size())
    return format("said direct with target %u, which it never added", verdict.target);
  opinion.target = verdict.target;
  return {};
}

int strictness(std::uint32_t kind) {
  switch (kind) {
    case LOKADB_DIRECT:
      return 1;
    case LOKADB_CLOUD:
      return 2;
    case LOKADB_ASK:
      return 3;
    case LOKADB_REFUSE:
      return 4;
    default:
      return 0;
  }
}

BatchVerdict disagreement(std::uint32_t plugin, const char* what) {
  BatchVerdict refusal;
  refusal.kind = LOKADB_REFUSE;
  refusal.plugin = plugin;
  refusal.sqlstate = "XX000";
  refusal.message = std::string("plugins name different ") + what + " for one batch";
  return refusal;
}

}  // namespace

std::string read_verdict(PluginEntry entry, const lokadb_plugin& plugin, const Batch& batch,
                         const lokadb_verdict& verdict, PluginOpinion& opinion) {
  if (verdict.kind > LOKADB_REFUSE) return format("gave a verdict of unknown kind %u", verdict.kind);
  for (const lokadb_string* s : {&verdict.organization, &verdict.message, &verdict.detail, &verdict.hint})
    if (!is_string(*s)) return "gave a verdict with a string at address 0";
  if (verdict.kind == LOKADB_NO_OPINION) return {};
  if (entry == PluginEntry::Inspect && verdict.kind != LOKADB_REFUSE) return {};
  if (entry == PluginEntry::Review && verdict.kind != LOKADB_REFUSE)
    return "gave a verdict in review that is no refusal";
  opinion.kind = verdict.kind;
  if (verdict.kind == LOKADB_ASK) return {};
  if (!is_reason(plugin, verdict.reason)) return format("gave reason %u of %u", verdict.reason, plugin.reason_count);
  opinion.reason = verdict.reason;
  return verdict.kind == LOKADB_REFUSE ? read_refusal(verdict, opinion) : read_place(batch, verdict, opinion);
}

BatchVerdict combined(std::span<const RoundOpinion> opinions) {
  BatchVerdict all;
  const RoundOpinion* direct = nullptr;
  for (const RoundOpinion& o : opinions) {
    const PluginOpinion& opinion = o.opinion;
    if (!opinion.organization.empty() && !all.organization.empty() && opinion.organization != all.organization)
      return disagreement(o.plugin, "organizations");
    if (all.organization.empty()) all.organization = opinion.organization;
    all.commits = std::max(all.commits, opinion.commits);
    if (opinion.kind == LOKADB_DIRECT) {
      if (direct != nullptr && direct->opinion.target != opinion.target) return disagreement(o.plugin, "targets");
      direct = &o;
    }
    if (strictness(opinion.kind) <= strictness(all.kind)) continue;
    all.kind = opinion.kind;
    all.plugin = o.plugin;
    all.reason = opinion.kind == LOKADB_ASK ? kNoReason : opinion.reason;
    all.target = opinion.target;
  }
  return all;
}

}  // namespace lokadb
