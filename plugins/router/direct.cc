#include "direct.h"

#include "cloud.h"
#include "router.h"

namespace lokadb::router {

namespace {

using route::Reason;
using route::Verdict;

constexpr std::string_view kEnter = "SELECT profile FROM lokadb.enter($1, $2, $3, false, $4, $5)";

int add_gate(lokadb_batch* batch, const catalog::Catalog& catalog, const route::Analysis& analysis,
             const Verdict& verdict, const std::vector<route::Key>& all_keys) {
  std::string generation = std::to_string(verdict.generation);
  std::string keys = route::keys_argument(catalog, all_keys);
  lokadb_step_value values[5] = {};
  values[0].type = catalog::kTextOid;
  values[0].value = lent(verdict.organization);
  values[1].type = catalog::kInt8Oid;
  values[1].value = lent(generation);
  for (int i = 2; i < 5; ++i) values[i].type = kJsonbOid;
  values[2].value = lent(analysis.p_tables);
  values[3].value = lent(keys);
  values[4].value = lent(analysis.p_rights);
  return add_step(batch, LOKADB_CHECK, kEnter, values);
}

// One for all statements that need the same of the cloud, whatever their keys.
int add_gates(lokadb_batch* batch, const BatchState& state, const std::vector<Verdict>& verdicts) {
  const catalog::Catalog& catalog = *state.known.catalog;
  if (verdicts.size() == 1) return add_gate(batch, catalog, state.pieces[0].analysis(), verdicts[0], verdicts[0].keys);
  std::vector<bool> is_done(verdicts.size());
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (is_done[i]) continue;
    const route::Analysis& analysis = state.pieces[i].analysis();
    std::vector<route::Key> keys = verdicts[i].keys;
    for (std::size_t j = i + 1; j < verdicts.size(); ++j) {
      const route::Analysis& other = state.pieces[j].analysis();
      bool is_same =
          &other == &analysis || (other.p_tables == analysis.p_tables && other.p_rights == analysis.p_rights);
      if (is_done[j] || !is_same) continue;
      is_done[j] = true;
      keys.insert(keys.end(), verdicts[j].keys.begin(), verdicts[j].keys.end());
    }
    if (add_gate(batch, catalog, analysis, verdicts[i], keys) != LOKADB_OK) return LOKADB_FAILED;
  }
  return LOKADB_OK;
}

std::uint32_t add_target(lokadb_batch* batch, const catalog::Organization& organization, const Target& to) {
  lokadb_target target{};
  target.struct_size = sizeof target;
  target.name = lent(organization.id);
  target.host = lent(organization.host);
  target.port = to.port;
  target.database = lent(organization.dbname);
  target.user = lent(to.login.user);
  target.password = lent(to.login.password);
  target.generation = static_cast<std::uint64_t>(organization.generation);
  target.greeting = lent(to.greeting);
  target.known_as = to.number;
  return host->add_target(batch, &target);
}

}  // namespace

Reason go_direct(Router& router, lokadb_batch* batch, BatchState& state, const std::vector<Verdict>& verdicts,
                 lokadb_verdict& out, bool& failed) {
  const Verdict& first = verdicts.front();
  const catalog::Organization* organization = state.known.catalog->organization(first.organization);
  if (organization == nullptr || organization->host.empty()) return Reason::NoDirectLogin;
  state.target = router.targets.get(state.known.catalog, {state.settings, &state.settings->settings}, *organization,
                                    router.options.logins, router.stored_logins);
  if (state.target->login.user.empty()) return Reason::NoDirectLogin;
  failed |= add_gates(batch, state, verdicts) != LOKADB_OK;
  for (const Piece& piece : state.pieces) failed |= describe_by_local_parts(router, batch, piece) != LOKADB_OK;
  state.organization = first.organization;
  out.target = add_target(batch, *organization, *state.target);
  failed |= out.target == UINT32_MAX;
  out.kind = LOKADB_DIRECT;
  out.organization = lent(state.organization);
  return Reason::None;
}

}  // namespace lokadb::router
