// lokadb explain: says where the proxy would send a statement, and why. Decides by the proxy's own function.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "catalog/catalog.h"
#include "cli/command.h"
#include "cli/connection.h"
#include "cli/organization.h"
#include "route/analysis.h"
#include "route/decide.h"
#include "route/literals.h"
#include "route/tenant_scope.h"
#include "sql/parse.h"

namespace lokadb::cli {

namespace {

using Json = nlohmann::ordered_json;
using catalog::Catalog;
using catalog::ValueType;
using route::Verdict;

constexpr std::string_view kStandIn = "stand-in";

// Asks the cloud's refs. Keys that stand for a parameter without a value belong to the organization of -org.
class RefsOfCloud final : public route::KeySource {
 public:
  RefsOfCloud(Connection& db, std::string organization) : db_(db), organization_(std::move(organization)) {}

  Found find(const catalog::Table& table, std::string_view key) const override {
    if (stand_ins_.contains(std::string(key))) return {Answer::Found, organization_};
    auto known = known_.find({table.quoted, std::string(key)});
    if (known == known_.end()) return {};
    return known->second.empty() ? Found{Answer::Nobody, {}} : Found{Answer::Found, known->second};
  }

  void look_up(const Catalog& catalog, const std::vector<route::Key>& keys) {
    for (const route::Key& key : keys) {
      const std::string& table = catalog.tables()[key.table].quoted;
      known_[{table, key.text}] =
          db_.value("SELECT org FROM lokadb.find_refs($1::regclass, ARRAY[$2::text])", {table, key.text});
    }
  }

  // A key of the type that nobody has asked for.
  std::string stand_in(ValueType type, std::size_t number) {
    std::string key = type == ValueType::Uuid   ? "00000000-0000-4000-8000-" + std::to_string(100000000000 + number)
                      : type == ValueType::Text ? std::string(kStandIn) + std::to_string(number)
                                                : std::to_string(2147480000 + number);
    stand_ins_.insert(key);
    return key;
  }

 private:
  Connection& db_;
  std::string organization_;
  std::map<std::pair<std::string, std::string>, std::string> known_;
  std::set<std::string> stand_ins_;
};

struct Question {
  Connection& db;
  std::shared_ptr<const Catalog> catalog;
  catalog::SearchPath path;
  std::string organization;  // -org
  std::optional<catalog::Profile> profile;
  std::optional<std::string> tenant;
  std::vector<std::string> values;
  route::TenantScope named;  // by -tenant, and by the statements before
};

// --- parameters

std::uint32_t oid_of(ValueType type, bool is_array) {
  switch (type) {
    case ValueType::Int:
      return is_array ? 1007 : catalog::kInt4Oid;
    case ValueType::BigInt:
      return is_array ? 1016 : catalog::kInt8Oid;
    case ValueType::Uuid:
      return is_array ? 2951 : catalog::kUuidOid;
    case ValueType::Text:
      return is_array ? 1009 : catalog::kTextOid;
  }
  return 0;
}

struct Parameters {
  std::vector<std::string> texts;
  std::vector<catalog::Parameter> values;
};

// Those of the command line; without any, and with -org, what makes every condition one of that organization.
Parameters parameters(const Question& q, const sql::Statement& statement, const route::Analysis& analysis,
                      RefsOfCloud& refs) {
  Parameters made;
  made.texts = q.values;
  made.texts.resize(statement.parameter_count);
  std::vector<std::uint32_t> types(statement.parameter_count);
  if (q.values.empty())
    for (const route::Source& source : analysis.sources)
      for (const sql::Value& value : source.values) {
        if (value.kind != sql::Value::Kind::Parameter || value.index == 0 || value.index > made.texts.size()) continue;
        std::string& text = made.texts[value.index - 1];
        bool is_tenant = source.kind == route::Source::Kind::Tenant;
        text = is_tenant ? q.organization : refs.stand_in(source.type, value.index);
        if (source.is_array) text = "{" + text + "}";
        types[value.index - 1] = oid_of(source.type, source.is_array);
      }
  for (std::size_t i = 0; i < made.texts.size(); ++i) made.values.push_back({made.texts[i], types[i], false, false});
  return made;
}

bool names_parameters(const route::Analysis& analysis) {
  return std::any_of(analysis.sources.begin(), analysis.sources.end(), [](const route::Source& s) {
    return std::any_of(s.values.begin(), s.values.end(),
                       [](const sql::Value& v) { return v.kind == sql::Value::Kind::Parameter; });
  });
}

// --- one statement

struct Explained {
  route::Analysis analysis;
  Verdict verdict;
};

Explained explain(const Question& q, const sql::Statement& statement, const route::LiteralList& literals) {
  Explained made{route::analyse(q.catalog, statement, q.path), {}};
  if (q.values.empty() && q.organization.empty() && q.named.value().empty() && names_parameters(made.analysis))
    throw Failure{"the way of this statement depends on its parameters: give their values behind it, or -org", kUsage};
  if (!q.values.empty() && q.values.size() < statement.parameter_count)
    throw Failure{
        "the statement has " + std::to_string(statement.parameter_count) + " parameters: give a value for each",
        kUsage};
  RefsOfCloud refs(q.db, q.organization);
  Parameters params = parameters(q, statement, made.analysis, refs);
  route::Session session;
  session.profile = q.profile;
  std::string_view named = q.named.value();
  if (!named.empty()) {
    using Naming = route::Session::Naming;
    bool is_usable = q.catalog->canonical_organization(named) == named && !q.catalog->is_reserved(named);
    session.naming = named == "*" ? Naming::All : is_usable ? Naming::One : Naming::Unusable;
    session.named = named;
  }
  for (int round = 0; round < 8; ++round) {
    made.verdict = route::decide(made.analysis, {literals.view(), params.values}, session, refs);
    if (made.verdict.path != route::Path::LookUp) return made;
    refs.look_up(*q.catalog, made.verdict.look_ups);
  }
  throw Failure{"the statement's keys cannot be looked up"};
}

// --- telling

std::string_view path_word(const Verdict& v) {
  switch (v.path) {
    case route::Path::Direct:
      return "direct";
    case route::Path::Refuse:
      return "refused";
    default:
      return "cloud";
  }
}

std::string_view access_word(route::Access access) {
  constexpr std::string_view kWords[] = {"read", "locking read", "write"};
  return kWords[static_cast<std::size_t>(access)];
}

std::string_view known_word(const Verdict& v) {
  if (v.whose == Verdict::Whose::Nobody) return "by a key that nobody has";
  constexpr std::string_view kWords[] = {"", "the application has named it", "by a condition on the tenant column",
                                         "by refs"};
  return kWords[static_cast<std::size_t>(v.known)];
}

Json to_json(const std::string& text, const Explained& e, bool is_stand_in) {
  const Verdict& v = e.verdict;
  const route::ReasonInfo& why = route::info(v.reason);
  Json j{{"statement", text},
         {"path", path_word(v)},
         {"access", access_word(e.analysis.access)},
         {"reason", why.id},
         {"text", why.text}};
  if (v.reason == e.analysis.cloud_reason && !e.analysis.detail.empty()) j["detail"] = e.analysis.detail;
  if (!why.advice.empty()) j["advice"] = why.advice;
  if (!v.sqlstate.empty()) j["sqlstate"] = v.sqlstate;
  if (v.whose == Verdict::Whose::One) {
    j["organization"] = v.organization;
    j["profile"] = catalog::profile_name(v.profile);
    j["generation"] = v.generation;
  }
  if (!known_word(v).empty()) j["known"] = known_word(v);
  j["tables"] = Json::array();
  for (std::uint16_t t : e.analysis.tables) j["tables"].push_back(e.analysis.catalog->tables()[t].quoted);
  if (!e.analysis.p_rights.empty()) j["rights"] = Json::parse(e.analysis.p_rights);
  if (!v.keys.empty() && !is_stand_in) j["keys"] = Json::parse(route::keys_argument(*e.analysis.catalog, v.keys));
  if (v.use_local_part) j["local_part"] = true;
  return j;
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list) text += (text.empty() ? "" : ", ") + item.get<std::string>();
  return text;
}

void line(const char* name, const std::string& text) {
  if (!text.empty()) std::printf("  %-13s %s\n", name, text.c_str());
}

void tell(const Json& j) {
  auto text = [&](const char* name) { return j.contains(name) ? j[name].get<std::string>() : std::string(); };
  std::string path = text("path"), where = path == "refused" ? "it is refused (" + text("sqlstate") + ")" : path;
  std::printf("%s\n", text("statement").c_str());
  line("path", where);
  line("access", text("access"));
  std::string detail = text("detail").empty() ? "" : " (" + text("detail") + ")";
  line("reason", text("reason") + ": " + text("text") + detail);
  line("what to do", text("advice"));
  if (j.contains("organization")) line("organization", text("organization") + ", profile " + text("profile"));
  line("known", text("known"));
  line("tables", joined(j["tables"]));
  if (j.contains("rights"))
    for (const auto& [table, rights] : j["rights"].items())
      for (const auto& [right, columns] : rights.items())
        line("right", right + " on " + table + (columns.empty() ? "" : " (" + joined(columns) + ")"));
  if (j.contains("keys"))
    for (const auto& [table, keys] : j["keys"].items()) line("looked up", table + ": " + joined(keys));
  if (j.contains("local_part")) line("written as", "the local part, which can do what the root cannot");
}

constexpr FlagSpec kFlags[] = {
    kDbFlag,
    {"org", "N", "parameters without a value stand for this organization and its keys"},
    {"profile", "P", "as if the organization had this profile"},
    {"tenant", "V", "as if the application had named this organization, or '*'"},
    kJsonFlag,
};

Question question(Connection& db, const Flags& flags) {
  if (db.value("SELECT to_regprocedure('lokadb.catalog()')").empty())
    throw Failure{"database " + db.database() + " has no routing catalog: run lokadb init on it first"};
  auto catalog = Catalog::parse(db.value(std::string(catalog::kCatalogQuery)));
  if (!catalog) throw Failure{catalog.error().log_text()};
  Question q{db,
             *catalog,
             catalog::SearchPath::parse(db.value("SELECT reset_val FROM pg_settings WHERE name = 'search_path'"),
                                        db.value("SELECT current_user")),
             {},
             {},
             {},
             {},
             {}};
  if (flags.has("org")) q.organization = canonical_org(db, flags.get("org"));
  if (flags.has("profile")) {
    check_profile(flags.get("profile"));
    q.profile = catalog::profile_of(flags.get("profile"));
  }
  if (flags.has("tenant")) q.tenant = flags.get("tenant") == "*" ? "*" : canonical_org(db, flags.get("tenant"));
  if (q.tenant) q.named.set_default(*q.tenant);
  q.values.assign(flags.rest().begin() + 1, flags.rest().end());
  return q;
}

std::string text_of(const sql::Statement& statement, const std::string& text) {
  std::size_t length = statement.length > 0 ? static_cast<std::size_t>(statement.length) : text.npos;
  return std::string(trim(std::string_view(text).substr(static_cast<std::size_t>(statement.location), length)));
}

int run(const Flags& flags) {
  if (flags.rest().empty()) throw Failure{"the statement is missing", kUsage};
  const std::string& text = flags.rest().front();
  Connection db(flags.get("db"), "lokadb explain");
  Question q = question(db, flags);
  sql::Parsed parsed = sql::parse_sql(text);
  if (!parsed.error.empty())
    throw Failure{"PostgreSQL would refuse this: " + parsed.error + " at character " +
                  std::to_string(parsed.error_position)};
  route::LiteralList literals(text);
  Json all = Json::array();
  for (const sql::Statement& statement : parsed.statements) {
    all.push_back(to_json(text_of(statement, text), explain(q, statement, literals),
                          q.values.empty() && statement.parameter_count > 0));
    // What a statement names counts for those behind it.
    std::vector<catalog::Parameter> values;
    for (const std::string& value : q.values) values.push_back({value});
    q.named.apply(
        route::naming_effect(statement, {literals.view(), values}, q.catalog->setting(), !values.empty(), true));
  }
  if (flags.has("json")) return std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str()), 0;
  for (const Json& j : all) tell(j);
  return 0;
}

}  // namespace

const Command kExplain{"explain", "Says where the proxy would send a statement, and why", "SQL [VALUE ...]", kFlags,
                       run};

}  // namespace lokadb::cli
