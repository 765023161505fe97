#include "named.h"

#include <algorithm>

#include "base/text.h"
#include "router.h"
#include "sql/lexer.h"
#include "sql/parse.h"
#include "unread.h"

namespace lokadb::router {

NamedFacts::NamedFacts(const lokadb_batch* batch) {
  std::uint32_t count = host->fact_count(batch);
  for (std::uint32_t i = 0; i < count; ++i) {
    lokadb_fact fact{};
    fact.struct_size = sizeof fact;
    if (host->fact(batch, i, &fact) != LOKADB_OK) continue;
    switch (fact.kind) {
      case LOKADB_FACT_NAMED:
      case LOKADB_FACT_NOT_ELIGIBLE:
      case LOKADB_FACT_NAMING:
      case LOKADB_FACT_MISMATCH_LOGGED:
      case LOKADB_FACT_ALL_ALLOWED:
      case LOKADB_FACT_FOLLOWED:
        facts_.push_back({fact.kind, fact.statement, std::string(view(fact.value)), std::string(view(fact.name))});
        break;
      default:
        break;
    }
  }
}

bool NamedFacts::is_naming(std::uint32_t statement) const {
  return std::any_of(facts_.begin(), facts_.end(),
                     [statement](const Fact& f) { return f.kind == LOKADB_FACT_NAMING && f.statement == statement; });
}

bool NamedFacts::is_followed(std::uint32_t statement, std::string_view setting) const {
  return std::any_of(facts_.begin(), facts_.end(), [&](const Fact& f) {
    return f.kind == LOKADB_FACT_FOLLOWED && f.statement == statement && iequals(f.setting, setting);
  });
}

const NamedFacts::Fact* NamedFacts::named_for(std::uint32_t statement) const {
  const Fact* named = nullptr;
  for (const Fact& f : facts_) {
    if (f.kind != LOKADB_FACT_NAMED) continue;
    if (f.statement == statement || (f.statement == LOKADB_WHOLE_BATCH && named == nullptr)) named = &f;
  }
  return named;
}

const std::string* NamedFacts::value_for(std::uint32_t statement) const {
  const Fact* named = named_for(statement);
  return named != nullptr ? &named->value : nullptr;
}

bool NamedFacts::is_all_allowed() const {
  return std::any_of(facts_.begin(), facts_.end(), [](const Fact& f) { return f.kind == LOKADB_FACT_ALL_ALLOWED; });
}

bool NamedFacts::is_held(std::uint32_t statement) const {
  const Fact* named = named_for(statement);
  return named != nullptr && !named->setting.empty();
}

std::string NamedFacts::held_setting() const {
  for (const Fact& f : facts_)
    if (f.kind == LOKADB_FACT_NAMED && !f.setting.empty()) return f.setting;
  return {};
}

int NamedFacts::set_in_front(lokadb_batch* batch, const lokadb_batch_info& info, lokadb_verdict& out) const {
  constexpr std::string_view kSet = "SELECT pg_catalog.set_config($1, $2, true)";
  if (info.transaction_status == 'E') return LOKADB_OK;
  for (std::uint32_t i = 0; i < info.statement_count; ++i) {
    const Fact* named = named_for(i);
    if (named == nullptr || named->setting.empty()) continue;
    lokadb_statement s{};
    s.struct_size = sizeof s;
    if (host->statement(batch, i, &s) != LOKADB_OK) return LOKADB_FAILED;
    bool is_run = s.form == LOKADB_SIMPLE || s.form == LOKADB_BIND;
    bool may_read = (is_run && may_read_tables(view(s.text))) || s.form == LOKADB_FUNCTION_CALL;
    if (info.is_whole != 0 && !may_read) continue;
    lokadb_step_value values[2] = {};
    values[0].type = values[1].type = catalog::kTextOid;
    values[0].value = lent(named->setting);
    values[1].value = lent(named->value);
    if (add_step(batch, LOKADB_BEFORE, kSet, values, i) != LOKADB_OK) return LOKADB_FAILED;
    out.kind = LOKADB_CLOUD;
    out.reason = static_cast<std::uint32_t>(route::Reason::CatalogStale);
    if (s.form == LOKADB_SIMPLE)
      return LOKADB_OK;  // those behind it in the same Query are behind it on the server, too
  }
  return LOKADB_OK;
}

void NamedFacts::tell(std::uint32_t statement, const catalog::Catalog& catalog, route::Session& session) const {
  const std::string* named = value_for(statement);
  for (const Fact& f : facts_) {
    if (f.statement != statement && f.statement != LOKADB_WHOLE_BATCH) continue;
    switch (f.kind) {
      case LOKADB_FACT_NOT_ELIGIBLE:
        if (session.not_eligible == route::Reason::None) session.not_eligible = route::Reason::UnseenCommands;
        break;
      case LOKADB_FACT_MISMATCH_LOGGED:
        session.logs_mismatch = true;
        break;
      default:
        break;
    }
  }
  if (named == nullptr || named->empty()) return;
  if (*named == "*") {
    session.naming = route::Session::Naming::All;
    session.is_allowed = session.is_allowed || is_all_allowed();
    return;
  }
  // As lokadb.tenant() in the cloud takes it: in canonical form alone.
  auto canonical = catalog.canonical_organization(*named);
  bool is_usable = canonical && *canonical == *named && !catalog.is_reserved(*canonical);
  session.naming = is_usable ? route::Session::Naming::One : route::Session::Naming::Unusable;
  if (is_usable) session.named = *named;
}

int publish_about(lokadb_batch* batch, std::uint32_t statement, const route::Verdict& verdict) {
  lokadb_fact fact{};
  fact.struct_size = sizeof fact;
  fact.kind = LOKADB_FACT_ABOUT;
  fact.statement = statement;
  fact.name = lent(verdict.organization);
  fact.value = lent(verdict.about);
  return host->publish(batch, &fact);
}

int split_queries(lokadb_batch* batch) {
  lokadb_batch_info info{};
  info.struct_size = sizeof info;
  host->batch_info(batch, &info);
  if (info.is_whole == 0) return LOKADB_OK;
  for (std::uint32_t i = 0; i < info.statement_count; ++i) {
    lokadb_statement s{};
    s.struct_size = sizeof s;
    if (host->statement(batch, i, &s) != LOKADB_OK) return LOKADB_FAILED;
    if (s.form != LOKADB_SIMPLE || !sql::may_be_several(view(s.text))) continue;
    if (!sql::is_readable(view(s.text), view(info.client_encoding))) continue;
    std::vector<std::size_t> begins = sql::begins_of(sql::parse_sql(view(s.text), s.is_standard_strings != 0));
    // A Query is the last of its batch.
    if (begins.size() > 1) return host->split(batch, i, begins.data(), static_cast<std::uint32_t>(begins.size()));
  }
  return LOKADB_OK;
}

}  // namespace lokadb::router
