// SHOW LOKADB_ORGS and LOKADB_TABLES, and the router's part of LOKADB_SESSIONS.
#include <array>
#include <optional>

#include "route/safe.h"
#include "router.h"

namespace lokadb::router {

namespace {

using route::Reason;

std::string_view id_of(Reason reason) { return route::info(reason).id; }
std::string_view text_of(Reason reason) { return route::info(reason).text; }
std::string_view yes_or_no(bool is_yes) { return is_yes ? "yes" : "no"; }

template <std::size_t N>
int add(lokadb_rows* rows, const std::array<std::string, N>& cells) {
  std::array<lokadb_string, N> lent_cells;
  for (std::size_t i = 0; i < N; ++i) lent_cells[i] = lent(cells[i]);
  return host->add_row(rows, lent_cells.data(), N);
}

std::string text_of(const std::atomic<std::uint64_t>& count) {
  return std::to_string(count.load(std::memory_order_relaxed));
}

// Whatever the statement.
Reason why_not_direct(const Catalogs::Known& known, const catalog::Organization& o, const Router& router) {
  switch (o.profile) {
    case catalog::Profile::Local:
      return Reason::NotMoved;
    case catalog::Profile::Moving:
      return Reason::Moving;
    case catalog::Profile::Fdw:
      return Reason::ProfileFdw;
    case catalog::Profile::FdwDirect:
    case catalog::Profile::Direct:
      break;
  }
  if (o.host.empty() || router.options.logins.find(o.id, router.stored_logins).user.empty())
    return Reason::NoDirectLogin;
  return known.is_stale ? Reason::CatalogStale : Reason::None;
}

int show_organizations(Router& router, lokadb_rows* rows) {
  for (const auto& [database, known] : router.catalogs.all()) {
    if (known.catalog == nullptr) continue;
    for (const catalog::Organization& o : known.catalog->organizations()) {
      Reason why = why_not_direct(known, o, router);
      Tally& tally = router.tallies.of(database, o.id);
      bool had_fault = tally.faults.load(std::memory_order_relaxed) > 0;
      int answer =
          add<15>(rows, {database, o.id, std::string(catalog::profile_name(o.profile)), std::to_string(o.generation),
                         o.host, o.port, o.dbname, std::string(yes_or_no(why == Reason::None)), std::string(id_of(why)),
                         std::string(text_of(why)), text_of(tally.direct), text_of(tally.cloud), text_of(tally.refused),
                         had_fault ? tally.fault() : "", had_fault ? std::to_string(tally.fault_age()) : "0"});
      if (answer != LOKADB_OK) return answer;
    }
  }
  return LOKADB_OK;
}

// "conversation_id=conversations, ..."
std::string relations_of(const catalog::Catalog& catalog, const catalog::Table& table) {
  std::string all;
  for (const catalog::Parent& parent : table.parents) {
    all += all.empty() ? "" : ", ";
    all += table.columns[parent.column].name + "=" + catalog.tables()[parent.table].name;
    if (parent.is_declared) all += " (declared)";
  }
  return all;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

int show_tables(Router& router, lokadb_rows* rows) {
  for (const auto& [database, known] : router.catalogs.all()) {
    if (known.catalog == nullptr) continue;
    for (const catalog::Table& t : known.catalog->tables()) {
      route::Fault fault = route::table_fault(t);
      if (!fault && t.schema != "public") fault = {Reason::OtherSchema, t.schema};
      auto name_of = [&t](std::uint16_t column) { return column < t.columns.size() ? t.columns[column].name : ""; };
      int answer =
          add<10>(rows, {database, t.quoted, name_of(t.key), name_of(t.tenant), relations_of(*known.catalog, t),
                         std::string(yes_or_no(!fault)), std::string(id_of(fault.reason)),
                         std::string(text_of(fault.reason)), fault.detail, list_of(t.collisions)});
      if (answer != LOKADB_OK) return answer;
    }
  }
  return LOKADB_OK;
}

}  // namespace

// In the order of kShows.
int show(void* self, std::uint32_t which, lokadb_rows* rows) {
  Router& router = *static_cast<Router*>(self);
  return which == 0 ? show_organizations(router, rows) : show_tables(router, rows);
}

int session_state(void*, void* slot, lokadb_session_state* out) {
  const auto& session = *static_cast<SessionState*>(slot);
  out->is_off = session.off != Reason::None;
  out->reason = out->is_off ? static_cast<std::uint32_t>(session.off) : 0;
  if (session.surroundings != nullptr && out->is_off) out->details = lent(session.surroundings->search_path);
  return LOKADB_OK;
}

const lokadb_show kShows[2] = {
    {"lokadb_orgs",
     "database t, organization t, profile t, generation q, host t, port t, dbname t, direct t, reason t, text t, "
     "direct_count q, cloud_count q, refused_count q, last_fault t, fault_age q"},
    {"lokadb_tables",
     "database t, table t, key t, tenant t, relations t, direct t, reason t, text t, details t, also_in_schemas t"},
};

}  // namespace lokadb::router
