// The plugin tenant: its entry and options, what roles set, and the cross-check. See README.md.
#include "tenant.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/text.h"

namespace lokadb::tenant {

const lokadb_host* host = nullptr;

int publish_again(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict);

namespace {

int fail(std::string_view text) { return host->fail("XX000", lent(text)); }

// The value that a new session of this role begins with. Which of several counts: PostgreSQL manual, ALTER ROLE.
constexpr std::string_view kRoleValue = R"(SELECT pg_catalog.substr(s, pg_catalog.strpos(s, '=') + 1)
  FROM pg_catalog.pg_db_role_setting r, pg_catalog.unnest(r.setconfig) s
 WHERE pg_catalog.lower(pg_catalog.split_part(s, '=', 1)) = $1
   AND r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
   AND r.setrole IN (0, (SELECT u.oid FROM pg_catalog.pg_roles u WHERE u.rolname = session_user))
 ORDER BY r.setrole <> 0 DESC, r.setdatabase <> 0 DESC LIMIT 1)";
constexpr std::uint32_t kTextOid = 25;

// ------------------------------------------------------------------ options

std::string_view option(const lokadb_section* section, std::string_view name) {
  return view(host->option(section, lent(name)));
}

bool take_flag(std::string_view text, bool& out) {
  out = text == "1" || iequals(text, "true");
  return out || text == "0" || iequals(text, "false");
}

// class.name, as PostgreSQL takes it for a setting of one's own.
bool is_custom_setting(std::string_view name) {
  std::size_t parts = 0;
  for (std::size_t at = 0; at <= name.size(); ++parts) {
    std::size_t end = std::min(name.find('.', at), name.size());
    std::string_view part = name.substr(at, end - at);
    auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    bool is_name = !part.empty() && is_letter(part.front()) && std::all_of(part.begin(), part.end(), [&](char c) {
      return is_letter(c) || (c >= '0' && c <= '9') || c == '$';
    });
    if (!is_name) return false;
    at = end + 1;
  }
  return parts > 1;
}

int take_options(Options& out, const lokadb_section* section) {
  out.setting = lower(option(section, "setting"));
  if (!is_custom_setting(out.setting))
    return fail("[tenant] setting: \"" + out.setting + "\" is no setting of one's own (two names with a dot between)");
  if (!take_flag(option(section, "local_only"), out.is_local_only))
    return fail("[tenant] local_only is neither 1 (true) nor 0 (false)");
  std::string_view mismatch = option(section, "mismatch");
  if (mismatch != "reject" && mismatch != "log") return fail("[tenant] mismatch is neither reject nor log");
  out.logs_mismatch = mismatch == "log";
  std::string_view roles = option(section, "all_roles");
  while (!roles.empty()) {
    std::size_t end = std::min(roles.find(','), roles.size());
    std::string_view role = trim(roles.substr(0, end));
    roles.remove_prefix(std::min(end + 1, roles.size()));
    if (!role.empty()) out.all_roles.emplace(role);
  }
  return LOKADB_OK;
}

int init(const lokadb_section* section, void** self) {
  auto tenant = std::make_unique<Tenant>();
  if (take_options(tenant->options, section) != LOKADB_OK) return LOKADB_FAILED;
  tenant->options_number = 1;
  *self = tenant.release();
  return LOKADB_OK;
}

int reload(void* self, const lokadb_section* section) {
  Options next;
  if (take_options(next, section) != LOKADB_OK) return LOKADB_FAILED;
  Tenant& tenant = *static_cast<Tenant*>(self);
  // What sessions have set stays what it is, unless it was another setting or would not be allowed now.
  bool is_same = next.setting == tenant.options.setting && next.is_local_only == tenant.options.is_local_only;
  if (!is_same) ++tenant.options_number;
  tenant.options = std::move(next);
  return LOKADB_OK;
}

// ------------------------------------------------------------------ sessions

void destroy(void* self) { delete static_cast<Tenant*>(self); }
void* session_begin(void*, lokadb_string, lokadb_string) { return new SessionState; }
void session_end(void*, void* slot) { delete static_cast<SessionState*>(slot); }

int startup(void* self, lokadb_string name, lokadb_string value, std::uint8_t* takes) {
  const Options& options = static_cast<Tenant*>(self)->options;
  if (!iequals(view(name), options.setting)) return LOKADB_OK;
  if (options.is_local_only && value.size != 0) {
    std::string text =
        "lokadb: " + options.setting + " cannot be set when connecting, only for a transaction ([tenant] local_only)";
    return host->fail("0A000", lent(text));
  }
  *takes = 1;
  return LOKADB_OK;
}

thread_local std::string t_saved;

int session_save(void*, void* slot, lokadb_string* state) {
  const SessionState& session = *static_cast<SessionState*>(slot);
  t_saved = session.scope.is_initial() ? std::string() : session.scope.to_text();
  *state = lent(t_saved);
  return LOKADB_OK;
}

int session_restore(void* self, void* slot, lokadb_string state) {
  SessionState& session = *static_cast<SessionState*>(slot);
  auto scope = route::TenantScope::from_text(view(state));
  if (!scope) return fail("the state of a session is broken");
  session.scope = std::move(*scope);
  session.has_start_value = true;
  session.ask = SessionState::Ask::Known;
  session.options_number = static_cast<Tenant*>(self)->options_number;
  return LOKADB_OK;
}

// ------------------------------------------------------------------ what roles set

int ask(lokadb_batch* batch, const Options& options, SessionState& session, lokadb_verdict& out) {
  lokadb_step_value value{};
  value.type = kTextOid;
  value.value = lent(options.setting);
  lokadb_step step{};
  step.struct_size = sizeof step;
  step.sql = lent(kRoleValue);
  step.value_count = 1;
  step.values = &value;
  session.step = host->add_step(batch, &step);
  if (session.step == UINT32_MAX) return LOKADB_FAILED;
  session.ask = SessionState::Ask::Asked;
  out.kind = LOKADB_ASK;
  return LOKADB_OK;
}

int take_answer(Tenant& tenant, lokadb_batch* batch, SessionState& session, lokadb_verdict& out) {
  std::uint32_t rows = host->step_rows(batch, session.step);
  if (rows == UINT32_MAX) return fail("it was not asked what the role sets");
  session.ask = SessionState::Ask::Known;
  if (rows == 0) return LOKADB_OK;
  lokadb_cell cell{};
  if (host->step_cell(batch, session.step, 0, 0, &cell) != LOKADB_OK) return LOKADB_FAILED;
  if (view(cell.value).empty()) return LOKADB_OK;
  session.is_refused = tenant.options.is_local_only;
  if (session.is_refused || session.has_start_value) return LOKADB_OK;
  session.scope.set_default(view(cell.value));
  return publish_again(tenant, batch, out);
}

int refuse_role(const Options& options, SessionState& session, lokadb_verdict& out) {
  session.message = "lokadb: role or database set " + options.setting +
                    " for all their sessions, but it can only be set for a transaction";
  session.hint = "ALTER ROLE ... RESET " + options.setting + ", or ALTER DATABASE ... RESET; then connect again.";
  out.kind = LOKADB_REFUSE;
  out.reason = static_cast<std::uint32_t>(Reason::RoleValue);
  std::copy_n("0A000", 5, out.sqlstate);
  out.message = lent(session.message);
  out.hint = lent(session.hint);
  return LOKADB_OK;
}

// ------------------------------------------------------------------ the table

int inspect_batch(void* self, lokadb_batch* batch, lokadb_verdict* verdict) {
  return inspect(*static_cast<Tenant*>(self), batch, *verdict);
}

int decide_batch(void* self, lokadb_batch* batch, lokadb_verdict* verdict) {
  return decide(*static_cast<Tenant*>(self), batch, *verdict);
}

int review_batch(void* self, lokadb_batch* batch, const lokadb_verdict*, lokadb_verdict* verdict) {
  return review(*static_cast<Tenant*>(self), batch, *verdict);
}

void observe_event(void*, lokadb_batch*, void* slot, const lokadb_event* event) {
  observe(*static_cast<SessionState*>(slot), *event);
}

const lokadb_option kOptions[] = {
    {"setting", "lokadb.tenant", "Setting by which the application names the organization."},
    {"local_only", "1", "Refuse values that outlive the transaction: 1 (true) or 0 (false)."},
    {"mismatch", "reject",
     "What becomes of a statement that names another organization by itself: reject, or log and run it under the named "
     "one."},
    {"all_roles", "", "Roles that may name all organizations ('*') under policy = reject, separated by commas."},
};

const lokadb_reason kReasons[] = {
    {"naming-unseen", "the transaction has run something that may have named an organization unseen"},
    {"session-value", "an organization is named beyond the transaction; SET LOCAL, or [tenant] local_only = 0"},
    {"naming-not-understood",
     "an organization is named in a form whose value cannot be known; SET LOCAL, or SELECT "
     "set_config(...) in a statement of its own"},
    {"other-organization",
     "a statement names another organization than the application has named; correct one of the "
     "two"},
    {"role-value", "role or database name an organization for all sessions; ALTER ROLE ... RESET"},
};

lokadb_plugin make_plugin() {
  lokadb_plugin p{};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "tenant";
  p.version = "1.0";
  p.options = kOptions;
  p.option_count = std::size(kOptions);
  p.reasons = kReasons;
  p.reason_count = std::size(kReasons);
  p.init = init;
  p.reload = reload;
  p.destroy = destroy;
  p.session_begin = session_begin;
  p.session_end = session_end;
  p.inspect = inspect_batch;
  p.decide = decide_batch;
  p.review = review_batch;
  p.observe = observe_event;
  p.startup = startup;
  p.session_save = session_save;
  p.session_restore = session_restore;
  return p;
}

}  // namespace

int decide(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict) {
  SessionState& session = *static_cast<SessionState*>(host->slot(batch));
  if (session.ask == SessionState::Ask::ToAsk) {
    lokadb_batch_info info{};
    info.struct_size = sizeof info;
    host->batch_info(batch, &info);
    // Amid a transaction the question would be part of it.
    return info.transaction_status == 'I' ? ask(batch, tenant.options, session, verdict) : LOKADB_OK;
  }
  if (session.ask == SessionState::Ask::Asked && take_answer(tenant, batch, session, verdict) != LOKADB_OK)
    return LOKADB_FAILED;
  return session.is_refused ? refuse_role(tenant.options, session, verdict) : LOKADB_OK;
}

// SPEC T2. The router compares as well, and refuses before it comes to this; but who names an organization need not
// rely on who decides.
int review(const Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict) {
  std::uint32_t count = host->fact_count(batch);
  for (std::uint32_t i = 0; i < count; ++i) {
    lokadb_fact fact{};
    fact.struct_size = sizeof fact;
    if (host->fact(batch, i, &fact) != LOKADB_OK) return LOKADB_FAILED;
    if (fact.kind != LOKADB_FACT_ABOUT || view(fact.value) == view(fact.name)) continue;
    SessionState& session = *static_cast<SessionState*>(host->slot(batch));
    if (!tenant.options.logs_mismatch) {
      session.message = "lokadb: the statement names another organization than the application has named";
      verdict.kind = LOKADB_REFUSE;
      verdict.reason = static_cast<std::uint32_t>(Reason::OtherOrganization);
      std::copy_n("42501", 5, verdict.sqlstate);
      verdict.message = lent(session.message);
      return LOKADB_OK;
    }
    lokadb_batch_info info{};
    info.struct_size = sizeof info;
    host->batch_info(batch, &info);
    std::string line = "a statement of role " + std::string(view(info.role)) + " in database " +
                       std::string(view(info.database)) + " names organization " + std::string(view(fact.value)) +
                       ", but runs under " + std::string(view(fact.name)) + ", which the application has named";
    host->log(1, lent(line));
  }
  return LOKADB_OK;
}

}  // namespace lokadb::tenant

const lokadb_plugin* lokadb_plugin_entry(const lokadb_host* the_host) {
  lokadb::tenant::host = the_host;
  static const lokadb_plugin plugin = lokadb::tenant::make_plugin();
  return &plugin;
}
