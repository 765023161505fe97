#include "route/decide.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "route/constants.h"

namespace lokadb::route {

namespace {

using catalog::Profile;
using Naming = Session::Naming;
using Whose = Verdict::Whose;

// What one source, or all that is known of one relation, says.
struct Outcome {
  enum class Kind : std::uint8_t {
    Unknown,  // cannot be known here
    Nowhere,  // no row of any organization
    One,
    Several,
    LookUp,
  } kind = Kind::Unknown;
  std::string organization{};
};

class Decision {
 public:
  Decision(const Analysis& analysis, const Values& values, const Session& session, const KeySource& keys)
      : analysis_(analysis), catalog_(*analysis.catalog), values_(values), session_(session), keys_(keys) {}

  Verdict run() {
    out_.access = analysis_.access;
    if (analysis_.touch != Touch::LokadbTables) {
      out_.whose = analysis_.touch == Touch::Nothing ? Whose::NoTables : Whose::Unknown;
      if (analysis_.touch != Touch::Nothing) take_named();
      return cloud(analysis_.cloud_reason);
    }
    if (session_.naming == Naming::All) {
      out_.whose = Whose::All;
      return without_organization(Reason::AllOrganizations);
    }
    if (session_.naming == Naming::Unusable) return refuse(Reason::NamedUnusable, "22P02");
    if (session_.naming == Naming::One) {
      take_named();
      find_about();
      if (!out_.about.empty() && out_.about != session_.named) {
        if (!session_.logs_mismatch) return refuse(Reason::OtherOrganization, "42501");
        out_.is_mismatch = true;
      }
      return of_organization();
    }
    return by_conditions();
  }

 private:
  void take_named() {
    if (session_.naming != Naming::One) return;
    out_.whose = Whose::One;
    out_.organization = session_.named;
    out_.known = Verdict::Known::Named;
    find_profile();
  }

  void find_profile() {
    const catalog::Organization* o = catalog_.organization(out_.organization);
    out_.profile = o ? o->profile : Profile::Local;
    out_.generation = o ? o->generation : 0;
    if (session_.profile) out_.profile = *session_.profile;
  }

  // SPEC T2: a condition or a new row that names an organization, and perhaps another one.
  void find_about() {
    for (std::uint16_t number : analysis_.named_by_itself) {
      const Source& source = analysis_.sources[number];
      auto named = constants(analysis_, source, values_, session_.has_utf8);
      if (!named) continue;
      for (Constant& c : *named) {
        if (c.kind != Constant::Kind::Text) continue;
        out_.about = std::move(c.text);
        if (out_.about != session_.named) return;
      }
    }
  }

  // --- which organization

  Outcome ask_key(const Source& source, const std::string& key) {
    const catalog::Table& table = catalog_.tables()[source.table];
    if (table.key_type == catalog::ValueType::Int && !canonical_text(catalog::ValueType::Int, key))
      return {Outcome::Kind::Nowhere};
    KeySource::Found found = keys_.find(table, key);
    Key asked{source.table, key};
    if (found.answer == KeySource::Answer::NotAsked) {
      if (std::find(out_.look_ups.begin(), out_.look_ups.end(), asked) == out_.look_ups.end())
        out_.look_ups.push_back(std::move(asked));
      return {Outcome::Kind::LookUp};
    }
    if (found.answer == KeySource::Answer::Nobody) return {Outcome::Kind::Nowhere};
    if (std::find(out_.keys.begin(), out_.keys.end(), asked) == out_.keys.end()) out_.keys.push_back(std::move(asked));
    return {Outcome::Kind::One, std::string(found.organization)};
  }

  Outcome ask(const Source& source, const Constant& value) {
    if (value.kind == Constant::Kind::Null) return {Outcome::Kind::Nowhere};
    if (source.kind == Source::Kind::Key) return ask_key(source, value.text);
    if (catalog_.is_reserved(value.text)) return {Outcome::Kind::Nowhere};
    return {Outcome::Kind::One, value.text};
  }

  static Outcome combine(Outcome a, Outcome b) {
    using Kind = Outcome::Kind;
    for (Kind strongest : {Kind::LookUp, Kind::Unknown, Kind::Several})
      if (a.kind == strongest || b.kind == strongest) return {strongest};
    if (a.kind == Kind::Nowhere) return b;
    if (b.kind == Kind::Nowhere || a.organization == b.organization) return a;
    return {Kind::Several};
  }

  Outcome ask(const Source& source) {
    auto all = constants(analysis_, source, values_, session_.has_utf8);
    if (!all) return {Outcome::Kind::Unknown};
    Outcome sum{Outcome::Kind::Nowhere};
    bool is_partly_unknown = false;
    for (const Constant& value : *all) {
      Outcome one = ask(source, value);
      // A key that nobody has finds no row; but a new row must belong to somebody, and a parent without a foreign key
      // may be missing.
      if (one.kind == Outcome::Kind::Nowhere &&
          (source.must_exist || (source.may_dangle && value.kind == Constant::Kind::Text)))
        is_partly_unknown = true;
      sum = combine(std::move(sum), std::move(one));
    }
    if (is_partly_unknown && sum.kind != Outcome::Kind::LookUp) return {Outcome::Kind::Unknown};
    return sum;
  }

  // All conditions on the tenant column must agree; without any, the first key that tells.
  Outcome ask(const Bound& bound) {
    Outcome tenants;
    bool has_tenant = false;
    for (std::uint16_t number : bound.sources) {
      const Source& source = analysis_.sources[number];
      if (source.kind != Source::Kind::Tenant) break;
      Outcome one = ask(source);
      if (one.kind == Outcome::Kind::Unknown) continue;
      tenants = has_tenant ? combine(std::move(tenants), std::move(one)) : std::move(one);
      has_tenant = true;
    }
    if (has_tenant) {
      is_named_by_condition_ = true;
      return tenants;
    }
    for (std::uint16_t number : bound.sources) {
      const Source& source = analysis_.sources[number];
      if (source.kind == Source::Kind::Tenant) continue;
      Outcome one = ask(source);
      if (one.kind != Outcome::Kind::Unknown) return one;
    }
    return {Outcome::Kind::Unknown};
  }

  Verdict by_conditions() {
    Outcome all{Outcome::Kind::Nowhere};
    if (!analysis_.sources_are_sound) all = {Outcome::Kind::Unknown};
    bool has_sources = true;
    if (analysis_.sources_are_sound)
      for (const Bound& bound : analysis_.bound) {
        has_sources &= !bound.sources.empty();
        all = combine(std::move(all), ask(bound));
      }
    // A relation that cannot be known is not made known by asking for another's key.
    if (all.kind == Outcome::Kind::LookUp && can_be_known()) {
      out_.path = Path::LookUp;
      return std::move(out_);
    }
    out_.look_ups.clear();
    switch (all.kind) {
      case Outcome::Kind::One:
        out_.whose = Whose::One;
        out_.organization = std::move(all.organization);
        out_.known = is_named_by_condition_ ? Verdict::Known::Condition : Verdict::Known::Key;
        return of_organization();
      case Outcome::Kind::Nowhere:
        out_.whose = Whose::Nobody;
        return cloud(Reason::KeyUnknown);
      case Outcome::Kind::Several:
        out_.keys.clear();
        return without_organization(Reason::SeveralOrganizations);
      default:
        out_.keys.clear();
        return without_organization(unknown_reason(has_sources));
    }
  }

  Reason unknown_reason(bool has_sources) const {
    if (analysis_.cloud_reason != Reason::None) return analysis_.cloud_reason;
    if (analysis_.access == Access::Write && analysis_.kind == sql::StatementClass::Insert)
      return Reason::InsertWithoutOrganization;
    return has_sources && analysis_.sources_are_sound ? Reason::ValueNotKnown : Reason::OrganizationUnknown;
  }

  bool can_be_known() const {
    for (const Bound& bound : analysis_.bound) {
      bool is_possible = std::any_of(bound.sources.begin(), bound.sources.end(), [&](std::uint16_t s) {
        return constants(analysis_, analysis_.sources[s], values_, session_.has_utf8).has_value();
      });
      if (!is_possible) return false;
    }
    return true;
  }

  // --- which way

  Verdict without_organization(Reason reason) {
    if (session_.is_rejecting && !session_.is_allowed && is_about_rows())
      return refuse(Reason::Rejected, sqlstate::kFeatureNotSupported);
    // The cloud would answer for some organizations only, or weaken what was asked for.
    if (is_about_rows() && catalog_.has_direct_organizations())
      return refuse(Reason::OrganizationNotNamed, sqlstate::kFeatureNotSupported);
    if (catalog_.has_moved_organizations())
      if (Reason cannot = silently_weakened(); cannot != Reason::None)
        return refuse(cannot, sqlstate::kFeatureNotSupported);
    return cloud(reason);
  }

  bool is_about_rows() const {
    using Class = sql::StatementClass;
    switch (analysis_.kind) {
      case Class::Select:
      case Class::Insert:
      case Class::Update:
      case Class::Delete:
      case Class::Merge:
      case Class::Copy:
        return true;
      default:
        return false;
    }
  }

  Verdict of_organization() {
    find_profile();
    switch (out_.profile) {
      case Profile::Local:
        return at_home(Reason::NotMoved);
      case Profile::Moving:
        return at_home(Reason::Moving);
      case Profile::Fdw:
        return by_fdw(Reason::ProfileFdw);
      case Profile::FdwDirect: {
        Reason why = why_not_direct();
        return why == Reason::None ? direct() : by_fdw(why);
      }
      case Profile::Direct: {
        Reason why = why_not_direct();
        // A statement that is not about rows goes to the cloud as ever: it has no other place.
        if (why != Reason::None) return is_about_rows() ? refuse(why, sqlstate::kFeatureNotSupported) : cloud(why);
        // SPEC X1: refs alone are a guess, which a read would answer wrongly without a word.
        if (out_.known == Verdict::Known::Key && analysis_.access != Access::Write)
          return refuse(Reason::OrganizationNotNamed, sqlstate::kFeatureNotSupported);
        return direct();
      }
    }
    return cloud(Reason::NotMoved);
  }

  Reason why_not_direct() const {
    if (analysis_.cloud_reason != Reason::None) return analysis_.cloud_reason;
    if (out_.is_mismatch) return Reason::OtherOrganization;
    if (analysis_.kind == sql::StatementClass::Copy && out_.known != Verdict::Known::Named) return Reason::CopyFrom;
    for (const sql::Value& value : analysis_.assigned_tenants) {
      Constant c = constant(analysis_, value, catalog_.tenant_type(), values_, session_.has_utf8);
      if (c.kind != Constant::Kind::Text || c.text != out_.organization) return Reason::ChangesKey;
    }
    if (changes_key()) return Reason::ChangesKey;
    if (analysis_.access == Access::Write && out_.known == Verdict::Known::Named && lacks_organization())
      return Reason::InsertWithoutOrganization;
    if (session_.not_eligible != Reason::None) return session_.not_eligible;
    if (session_.catalog_is_stale) return Reason::CatalogStale;
    if (analysis_.access == Access::Write && !session_.sends_writes) return Reason::WritesNotYetDirect;
    if (analysis_.access == Access::LockingRead && !session_.sends_locking_reads) return Reason::LocksNotYetDirect;
    if (analysis_.has_user_types && !session_.sends_user_types) return Reason::Type;
    return Reason::None;
  }

  bool changes_key() const {
    if (analysis_.assigned_keys.empty()) return false;
    auto read = [&](const sql::Value& value, std::uint16_t table) {
      return constant(analysis_, value, catalog_.tables()[table].key_type, values_, session_.has_utf8);
    };
    auto target =
        std::find_if(analysis_.bound.begin(), analysis_.bound.end(), [](const Bound& b) { return b.is_target; });
    return !std::all_of(analysis_.assigned_keys.begin(), analysis_.assigned_keys.end(),
                        [&](const sql::Value& assigned) {
                          Constant c = read(assigned, target->table);
                          return c.kind == Constant::Kind::Text &&
                                 std::any_of(analysis_.condition_keys.begin(), analysis_.condition_keys.end(),
                                             [&](const sql::Value& value) {
                                               Constant known = read(value, target->table);
                                               return known.kind == Constant::Kind::Text && known.text == c.text;
                                             });
                        });
  }

  // NULL for the tenant column of a new row: the cloud's trigger would fill it in.
  bool lacks_organization() const {
    for (std::uint16_t number : analysis_.named_by_itself) {
      const Source& source = analysis_.sources[number];
      if (!source.must_exist) continue;
      auto all = constants(analysis_, source, values_, session_.has_utf8);
      if (!all ||
          std::any_of(all->begin(), all->end(), [](const Constant& c) { return c.kind == Constant::Kind::Null; }))
        return true;
    }
    return false;
  }

  Verdict at_home(Reason reason) {
    out_.use_local_part = !analysis_.local_parts.empty();
    return cloud(reason);
  }

  // SPEC C6.
  Verdict by_fdw(Reason reason) {
    const FdwCannot& cannot = analysis_.fdw_cannot;
    Reason why = silently_weakened();
    if (cannot.conflict_target) why = Reason::ConflictTargetFdw;
    if (cannot.group_by_key) why = Reason::GroupByKeyFdw;
    return why == Reason::None ? cloud(reason) : refuse(why, sqlstate::kFeatureNotSupported);
  }

  Reason silently_weakened() const {
    const FdwCannot& cannot = analysis_.fdw_cannot;
    if (cannot.skip_locked) return Reason::SkipLockedFdw;
    if (cannot.nowait) return Reason::NowaitFdw;
    if (cannot.current_of) return Reason::CurrentOfFdw;
    return Reason::None;
  }

  Verdict direct() {
    out_.path = Path::Direct;
    out_.reason = out_.known == Verdict::Known::Named       ? Reason::OrganizationNamed
                  : out_.known == Verdict::Known::Condition ? Reason::TenantKnown
                                                            : Reason::KeyFound;
    return std::move(out_);
  }

  Verdict cloud(Reason reason) {
    out_.path = Path::Cloud;
    out_.reason = reason;
    return std::move(out_);
  }

  Verdict refuse(Reason reason, std::string_view state) {
    out_.path = Path::Refuse;
    out_.reason = reason;
    out_.sqlstate = state;
    return std::move(out_);
  }

  const Analysis& analysis_;
  const catalog::Catalog& catalog_;
  const Values& values_;
  const Session& session_;
  const KeySource& keys_;
  Verdict out_;
  bool is_named_by_condition_ = false;
};

}  // namespace

Verdict decide(const Analysis& analysis, const Values& values, const Session& session, const KeySource& keys) {
  return Decision(analysis, values, session, keys).run();
}

std::string refusal_text(const Analysis& analysis, const Verdict& verdict) {
  const ReasonInfo& why = info(verdict.reason);
  std::string text = "lokadb: the statement is refused: " + std::string(why.text);
  if (verdict.reason == analysis.cloud_reason && !analysis.detail.empty()) text += " (" + analysis.detail + ")";
  return text;
}

// Only texts need an escape; JSON that is made by hand is quicker by a microsecond.
static std::string plain_keys_argument(const catalog::Table& table, std::span<const Key> keys) {
  std::string out = "{" + nlohmann::json(table.quoted).dump() + ":[";
  for (const Key& key : keys) {
    if (&key != keys.data()) out += ',';
    out.append("\"").append(key.text).append("\"");
  }
  return out + "]}";
}

std::string keys_argument(const catalog::Catalog& catalog, std::span<const Key> keys) {
  if (keys.empty()) return "{}";
  const catalog::Table& table = catalog.tables()[keys.front().table];
  bool is_plain = table.key_type != catalog::ValueType::Text &&
                  std::all_of(keys.begin(), keys.end(), [&](const Key& k) { return k.table == keys.front().table; });
  if (is_plain) return plain_keys_argument(table, keys);
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const Key& key : keys) all[catalog.tables()[key.table].quoted].push_back(key.text);
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lokadb::route
