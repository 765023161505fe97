#include "cloud.h"

#include <algorithm>
#include <set>

#include "copy_from.h"
#include "named.h"
#include "rewriting.h"
#include "router.h"
#include "sql/parse.h"

namespace lokadb::router {

namespace {

using route::Verdict;
using sql::StatementClass;
using Whose = Verdict::Whose;

// A step that sets the tenant, and the same for a cloud from which organizations have moved, where statements have the
// tenant in their conditions for the planner to see.
struct TenantStep {
  explicit TenantStep(const std::string& sql)
      : at_home(sql), with_plans(sql + ", pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', true)") {}
  const std::string at_home, with_plans;
};

// The gate first: it may wait for the end of a pause.
const TenantStep kGate{
    "SELECT (lokadb.enter($1, $2, '{}', false, $3)).generation, pg_catalog.set_config($4, $5, true)"};
const TenantStep kTenant{"SELECT pg_catalog.set_config($1, $2, true)"};
// Of no organization in particular: a move goes on when it has ended.
const TenantStep kTenantOfWrite{"SELECT lokadb.enter_all(), pg_catalog.set_config($1, $2, true)"};
constexpr std::string_view kEnterOnly = "SELECT (lokadb.enter($1, $2, '{}', false, $3)).generation";

std::uint32_t oid_of(catalog::ValueType type) {
  switch (type) {
    case catalog::ValueType::Uuid:
      return catalog::kUuidOid;
    case catalog::ValueType::Text:
      return catalog::kTextOid;
    default:
      return catalog::kInt8Oid;
  }
}

// Backslashes in its strings mean themselves, or there are none.
bool is_plain(const lokadb_statement& s) {
  return s.is_standard_strings != 0 || view(s.text).find('\\') == std::string_view::npos;
}

class CloudWork {
 public:
  CloudWork(Router& router, lokadb_batch* batch, SessionState& session, const std::vector<Verdict>& verdicts)
      : router_(router),
        batch_(batch),
        session_(session),
        pieces_(session.batch.pieces),
        verdicts_(verdicts),
        catalog_(*session.batch.known.catalog) {
    info_.struct_size = sizeof info_;
    host->batch_info(batch, &info_);
  }

  int run() {
    if (info_.transaction_status == 'E') return LOKADB_OK;
    if (info_.transaction_status == 'I') {
      session_.keeps_portal = session_.keeps_nameless_portal = false;
      session_.copies = 0;
      if (info_.is_session_pooled == 0) session_.has_other_role = false;
    }
    for (const Piece& piece : pieces_) session_.has_other_role |= piece.changes_role();
    if (info_.is_whole == 0 || session_.batch.calls_function || session_.batch.has_unread_portals) {
      session_.keeps_portal |= session_.batch.has_unread_portals && is_in_transaction();
      return work_on_unread(0);
    }
    // A Query is a batch of its own, and has everything in front.
    if (!pieces_.empty() && statement(0).form == LOKADB_SIMPLE) return work_on(0, pieces_.size());
    return work_on_all();
  }

 private:
  // In the order of the batch, those that cannot be read, too.
  int work_on_all() {
    auto unread = session_.batch.unread.begin(), last_unread = session_.batch.unread.end();
    std::uint32_t before = UINT32_MAX;
    for (std::size_t first = 0; first < pieces_.size();) {
      std::size_t end = end_of(first);
      for (; unread != last_unread && *unread < pieces_[first].statement; ++unread)
        if (work_on_unread(*unread) != LOKADB_OK) return LOKADB_FAILED;
      if (pieces_[first].statement != before + 1) in_force_.reset();  // one between them names somebody
      before = pieces_[first].statement;
      if (work_on(first, end) != LOKADB_OK) return LOKADB_FAILED;
      first = end;
    }
    for (; unread != last_unread; ++unread)
      if (work_on_unread(*unread) != LOKADB_OK) return LOKADB_FAILED;
    return LOKADB_OK;
  }

  // The one that the piece is in.
  lokadb_statement statement(std::size_t piece) const {
    lokadb_statement s{};
    s.struct_size = sizeof s;
    host->statement(batch_, pieces_[piece].statement, &s);  // which was read before
    return s;
  }

  // Of the pieces of one statement of the batch.
  std::size_t end_of(std::size_t first) const {
    std::size_t end = first + 1;
    while (end < pieces_.size() && pieces_[end].statement == pieces_[first].statement) ++end;
    return end;
  }

  // --- the tenant and the gate

  bool is_in_transaction() const { return info_.transaction_status == 'T' || has_begun_ || info_.ends_in_flush != 0; }

  // What a later statement of the transaction reads from: it must not come under the tenant of another. Its own
  // conditions hold as well without any tenant.
  void note_portal(std::size_t index) {
    const Piece& piece = pieces_[index];
    bool is_last = index + 1 == pieces_.size();
    if (piece.kind() == StatementClass::Cursor)
      session_.keeps_portal |= is_in_transaction();
    else if (piece.stays_open && (is_in_transaction() || !is_last))
      (piece.has_named_portal ? session_.keeps_portal : session_.keeps_nameless_portal) = true;
  }

  std::optional<std::string> tenant_for(std::size_t index) const {
    const Verdict& v = verdicts_[index];
    const Piece& piece = pieces_[index];
    if (takes_nothing(piece.kind())) return std::nullopt;
    if (v.whose == Whose::NoTables && piece.kind() != StatementClass::Cursor) return std::nullopt;
    if (piece.named) return piece.named->empty() ? std::nullopt : piece.named;
    bool is_kept_apart = session_.keeps_portal || session_.keeps_nameless_portal;
    if (piece.kind() == StatementClass::Cursor || is_kept_apart) return "";
    if (v.whose == Whose::One) return v.organization;
    if (v.whose == Whose::Nobody) return catalog_.nobody();
    return "";
  }

  // What it reads and writes is not known, but not under what somebody else has left there.
  int work_on_unread(std::uint32_t statement) {
    const NamedFacts facts(batch_);
    const std::string* named = facts.value_for(statement);
    const std::string tenant = named != nullptr ? *named : "";
    writes_to_any_ = true;
    forget_gates();
    int result = set_tenant(tenant, statement);
    forget_gates();
    return result;
  }

  // The tenant and the locks that are there may not be there any more.
  void forget_gates() {
    in_force_.reset();
    entered_.clear();
    has_entered_all_ = false;
  }

  bool is_write_to_any(std::size_t index) const {
    const route::Analysis& a = pieces_[index].analysis();
    bool is_any = verdicts_[index].whose == Whose::Unknown || verdicts_[index].whose == Whose::All;
    return is_any && a.touch == route::Touch::LokadbTables && a.access == route::Access::Write;
  }

  // Some statements of the Query have no pieces: they name somebody.
  bool names_within(std::size_t first, std::size_t end) const {
    std::size_t statements = 0;
    for (std::size_t i = first; i < end; i = end_of(i)) ++statements;
    return statements != info_.statement_count;
  }

  // One statement of the batch, or all of a Query.
  int work_on(std::size_t first, std::size_t end) {
    if (pieces_[first].is_parse) return replace_parse(first);
    std::optional<std::string> tenant;
    bool is_one = true, sets_modes = false, has_control = false, leaves_locks = true;
    for (std::size_t i = first; i < end; ++i) {
      leaves_locks &= pieces_[i].leaves_locks();
      if (!pieces_[i].has_named_portal) session_.keeps_nameless_portal = false;
      has_control |= pieces_[i].kind() == StatementClass::Transaction;
      has_begun_ |= has_control;
      sets_modes |= pieces_[i].sets_modes();
      std::optional<std::string> own = tenant_for(i);
      note_portal(i);
      if (!own) continue;
      writes_to_any_ |= is_write_to_any(i);
      is_one = is_one && (!tenant || *tenant == *own);
      tenant = is_one ? *own : "";
    }
    if (has_control) in_force_.reset();
    if (!leaves_locks) forget_gates();
    if (pieces_[first].kind() == StatementClass::Set) in_force_.reset();
    // Isolation and the like can only be set before the first snapshot is taken.
    if (!tenant || (sets_modes && end - first > 1)) return LOKADB_OK;
    for (std::size_t i = first; i < end; ++i)
      if (enter(i, pieces_[first].statement) != LOKADB_OK) return LOKADB_FAILED;
    if (set_tenant(*tenant, pieces_[first].statement) != LOKADB_OK) return LOKADB_FAILED;
    for (std::size_t i = first; i < end; ++i)
      if (pieces_[i].kind() == StatementClass::Call) in_force_.reset();
    if (has_control || !is_one) return LOKADB_OK;
    if (end - first > 1 && names_within(first, end)) return LOKADB_OK;
    if (end - first == 1 && pieces_[first].kind() == StatementClass::Copy) return copy(first);
    for (std::size_t i = first; i < end; i = end_of(i))
      if (replace(i, end_of(i), *tenant) != LOKADB_OK) return LOKADB_FAILED;
    return LOKADB_OK;
  }

  // Gates of all organizations but the last ride alone, that with the tenant.
  int enter(std::size_t index, std::uint32_t statement) {
    const Verdict& v = verdicts_[index];
    if (v.whose != Whose::One || takes_nothing(pieces_[index].kind())) return LOKADB_OK;
    std::string keys = route::keys_argument(catalog_, v.keys);
    if (!entered_.insert(v.organization + '\0' + keys).second) return LOKADB_OK;
    if (pending_gate_ && add_gate(kEnterOnly, nullptr, statement) != LOKADB_OK) return LOKADB_FAILED;
    pending_gate_ = Gate{v.organization, std::to_string(v.generation), std::move(keys)};
    return LOKADB_OK;
  }

  int set_tenant(const std::string& tenant, std::uint32_t statement) {
    bool enters_all = writes_to_any_ && !has_entered_all_;
    if (pending_gate_ && enters_all && add_gate(kEnterOnly, nullptr, statement) != LOKADB_OK) return LOKADB_FAILED;
    if (pending_gate_) {
      in_force_ = tenant;
      return add_gate(with_tenant(kGate), &tenant, statement);
    }
    if (in_force_ && *in_force_ == tenant && !enters_all) return LOKADB_OK;
    in_force_ = tenant;
    has_entered_all_ |= enters_all;
    lokadb_step_value values[2] = {};
    values[0] = text(catalog_.setting());
    values[1] = text(tenant);
    return add_step(batch_, LOKADB_BEFORE, with_tenant(enters_all ? kTenantOfWrite : kTenant), values, statement);
  }

  std::string_view with_tenant(const TenantStep& step) const {
    return catalog_.has_moved_organizations() ? step.with_plans : step.at_home;
  }

  int add_gate(std::string_view sql, const std::string* tenant, std::uint32_t statement) {
    lokadb_step_value values[5] = {};
    values[0] = text(pending_gate_->organization);
    values[1] = text(pending_gate_->generation);
    values[1].type = catalog::kInt8Oid;
    values[2] = text(pending_gate_->keys);
    values[2].type = kJsonbOid;
    std::uint32_t count = 3;
    if (tenant != nullptr) {
      values[count++] = text(catalog_.setting());
      values[count++] = text(*tenant);
    }
    int result = add_step(batch_, LOKADB_BEFORE, sql, {values, count}, statement);
    pending_gate_.reset();
    return result;
  }

  static lokadb_step_value text(const std::string& value) {
    lokadb_step_value v{};
    v.type = catalog::kTextOid;
    v.value = lent(value);
    return v;
  }

  // --- other words

  // Of one statement of the batch.
  int replace(std::size_t first, std::size_t end, const std::string& tenant) {
    if (tenant.empty() || tenant == "*") return LOKADB_OK;
    std::vector<Rewriting> wishes;
    bool has_some = false;
    for (std::size_t i = first; i < end; ++i) {
      wishes.push_back({pieces_[i].analysis(), unrestricted(i), {}});
      has_some |= verdicts_[i].use_local_part || !wishes.back().relations.empty();
    }
    if (!has_some) return LOKADB_OK;
    lokadb_statement s = statement(first);
    if (!is_plain(s)) return LOKADB_OK;
    std::string_view old_text = view(s.text);
    sql::Parsed parsed = sql::parse_sql(old_text, s.is_standard_strings != 0);
    bool is_bind = s.form == LOKADB_BIND, has_parameter = false;
    // More or fewer values than it takes: what is wrong with that PostgreSQL says of the client's own statement.
    if (is_bind && (parsed.statements.size() != 1 || parsed.statements[0].parameter_count != s.parameter_count))
      return LOKADB_OK;
    std::string parameter = "$" + std::to_string(s.parameter_count + 1);
    std::string new_text;
    std::vector<lokadb_edit> edits;
    std::size_t done = 0;
    for (std::size_t i = first; i < end; ++i) {
      Rewriting& wish = wishes[i - first];
      if (!verdicts_[i].use_local_part && wish.relations.empty()) continue;
      if (pieces_[i].number >= parsed.statements.size()) return LOKADB_OK;
      auto [begin, size] = place_of(parsed.statements[pieces_[i].number], old_text);
      wish.tenant = is_bind ? parameter : sql::quoted_literal(tenant);
      auto rewritten = router_.rewrites.get(wish, std::string(old_text.substr(begin, size)), is_bind);
      if (!*rewritten) continue;
      new_text.append(old_text.substr(done, begin - done)).append((*rewritten)->text);
      for (const lokadb_edit& e : edits_of(**rewritten, begin)) edits.push_back(e);
      done = begin + size;
      has_parameter |= is_bind && (*rewritten)->text.find(parameter) != std::string::npos;
    }
    if (new_text.empty()) return LOKADB_OK;
    new_text.append(old_text.substr(done));
    return tell(pieces_[first].statement, new_text, edits, has_parameter ? &tenant : nullptr,
                is_bind && verdicts_[first].use_local_part);
  }

  // What the root does not take is prepared for the local part: there it is run, if at all.
  int replace_parse(std::size_t index) {
    const route::Analysis& analysis = pieces_[index].analysis();
    if (analysis.local_parts.empty()) return LOKADB_OK;
    lokadb_statement s = statement(index);
    if (!is_plain(s)) return LOKADB_OK;
    auto rewritten = by_local_parts(analysis, std::string(view(s.text)));
    if (!rewritten) return LOKADB_OK;
    return tell(pieces_[index].statement, rewritten->text, edits_of(*rewritten, 0), nullptr, false);
  }

  int copy(std::size_t index) {
    const route::Analysis& analysis = pieces_[index].analysis();
    lokadb_statement s = statement(index);
    if (s.form != LOKADB_SIMPLE || info_.statement_count != 1 || analysis.bound.size() != 1) return LOKADB_OK;
    const catalog::Table& table = catalog_.tables()[analysis.bound.front().table];
    if (!is_in(session_.batch.settings->guarded, table)) return LOKADB_OK;
    std::string text(view(s.text));
    sql::Parsed parsed = sql::parse_sql(text, s.is_standard_strings != 0);
    if (parsed.statements.size() != 1) return LOKADB_OK;
    auto made = copy_through_table(table, text, parsed.statements.front(), session_.copies);
    if (!made) return LOKADB_OK;
    ++session_.copies;
    if (add_step(batch_, LOKADB_BEFORE, made->make_table, {}, pieces_[index].statement) != LOKADB_OK)
      return LOKADB_FAILED;
    lokadb_replacement r{};
    r.struct_size = sizeof r;
    r.statement = pieces_[index].statement;
    r.text = lent(made->copy.text);
    std::vector<lokadb_edit> edits = edits_of(made->copy, 0);
    r.edit_count = static_cast<std::uint32_t>(edits.size());
    r.edits = edits.data();
    r.has_two = 1;
    return host->replace(batch_, &r);
  }

  int tell(std::uint32_t statement, const std::string& new_text, const std::vector<lokadb_edit>& edits,
           const std::string* tenant, bool with_parse) {
    lokadb_step_value value{};
    if (tenant != nullptr) {
      value = text(*tenant);
      value.type = oid_of(catalog_.tenant_type());
    }
    lokadb_replacement r{};
    r.struct_size = sizeof r;
    r.statement = statement;
    r.text = lent(new_text);
    r.value_count = tenant != nullptr ? 1 : 0;
    r.values = &value;
    r.edit_count = static_cast<std::uint32_t>(edits.size());
    r.edits = edits.data();
    r.with_parse = with_parse ? 1 : 0;
    return host->replace(batch_, &r);
  }

  // begin: of the statement in the client's text.
  static std::vector<lokadb_edit> edits_of(const sql::Rewritten& rewritten, std::size_t begin) {
    std::vector<lokadb_edit> edits;
    for (const auto& e : rewritten.positions.edits()) edits.push_back({e.at + begin, e.removed, e.added});
    return edits;
  }

  static std::pair<std::size_t, std::size_t> place_of(const sql::Statement& facts, std::string_view text) {
    auto begin = static_cast<std::size_t>(facts.location);
    return {begin, facts.length > 0 ? static_cast<std::size_t>(facts.length) : text.size() - begin};
  }

  // Relations of which every organization's part would be planned, and by UPDATE and DELETE opened; those that the role
  // may read all columns of, so that it may read a subquery of them, too.
  std::vector<std::uint16_t> unrestricted(std::size_t index) const {
    std::vector<std::uint16_t> out;
    const Verdict& v = verdicts_[index];
    if (!catalog_.has_moved_organizations() || v.use_local_part || session_.has_other_role) return out;
    bool is_about_one = v.whose == Whose::Nobody || (v.whose == Whose::One && v.known != Verdict::Known::Not);
    StatementClass kind = pieces_[index].kind();
    bool is_understood = kind == StatementClass::Select || kind == StatementClass::Insert ||
                         kind == StatementClass::Update || kind == StatementClass::Delete;
    if (!is_about_one || !is_understood) return out;
    const route::Analysis& analysis = pieces_[index].analysis();
    for (const route::Bound& b : analysis.bound) {
      bool has_own = !b.sources.empty() && analysis.sources[b.sources.front()].kind == route::Source::Kind::Tenant;
      bool is_insert = b.is_target && kind == StatementClass::Insert;
      if (!has_own && !is_insert && is_in(session_.batch.settings->readable, catalog_.tables()[b.table]))
        out.push_back(b.relation);
    }
    return out;
  }

  static bool is_in(const std::vector<std::string>& quoted, const catalog::Table& table) {
    return std::find(quoted.begin(), quoted.end(), table.quoted) != quoted.end();
  }

  struct Gate {
    std::string organization, generation, keys;
  };

  Router& router_;
  lokadb_batch* batch_;
  SessionState& session_;
  const std::vector<Piece>& pieces_;
  const std::vector<Verdict>& verdicts_;
  const catalog::Catalog& catalog_;
  lokadb_batch_info info_{};
  std::optional<std::string> in_force_;  // the tenant, by a step of this batch
  std::optional<Gate> pending_gate_;
  std::set<std::string> entered_;
  bool writes_to_any_ = false, has_entered_all_ = false;
  bool has_begun_ = false;
};

}  // namespace

bool takes_nothing(StatementClass kind) {
  switch (kind) {
    case StatementClass::Set:
    case StatementClass::Transaction:
    case StatementClass::Prepare:
    case StatementClass::Show:
    case StatementClass::Discard:
    case StatementClass::Notify:
    case StatementClass::Ddl:
    case StatementClass::Utility:
    case StatementClass::Lock:  // nor may a snapshot be taken before the lock is had
    case StatementClass::Empty:
      return true;
    default:
      return false;
  }
}

int describe_by_local_parts(Router& router, lokadb_batch* batch, const Piece& piece) {
  if (piece.analysis().local_parts.empty()) return LOKADB_OK;
  lokadb_statement s{};
  s.struct_size = sizeof s;
  host->statement(batch, piece.statement, &s);
  if (!is_plain(s)) return LOKADB_OK;
  auto other = router.rewrites.get({piece.analysis(), {}, {}}, std::string(view(s.text)), s.form != LOKADB_SIMPLE);
  if (!*other) return LOKADB_OK;
  lokadb_replacement r{};
  r.struct_size = sizeof r;
  r.statement = piece.statement;
  r.text = lent((*other)->text);
  return host->replace(batch, &r);
}

int add_cloud_work(Router& router, lokadb_batch* batch, SessionState& session,
                   const std::vector<route::Verdict>& verdicts) {
  return CloudWork(router, batch, session, verdicts).run();
}

}  // namespace lokadb::router
