// What a batch does to the named organization, and what its statements are told of it.
#include <algorithm>

#include "catalog/value.h"
#include "route/literals.h"
#include "sql/lexer.h"
#include "sql/parse.h"
#include "tenant.h"

namespace lokadb::tenant {

namespace {

using route::NamingEffect;
using Kind = NamingEffect::Kind;

class Inspection {
 public:
  Inspection(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& out)
      : tenant_(tenant),
        options_(tenant.options),
        batch_(batch),
        out_(out),
        session_(*static_cast<SessionState*>(host->slot(batch))) {
    info_.struct_size = sizeof info_;
    host->batch_info(batch, &info_);
  }

  int run() {
    begin();
    if (!session_.is_blind && read() != LOKADB_OK) return LOKADB_FAILED;
    if (out_.kind == LOKADB_REFUSE) return LOKADB_OK;
    return publish_all();
  }

  // SPEC T1: the fact that each statement is about the named organization, as far as it is known.
  int publish_all() {
    if (session_.coming.empty()) return publish_scope(LOKADB_WHOLE_BATCH, session_.scope) ? finish() : LOKADB_FAILED;
    route::TenantScope scope = session_.scope;
    for (std::uint32_t i = 0; i < session_.coming.size(); ++i) {
      const NamingEffect& effect = session_.coming[i].effect;
      if (!publish_scope(i, scope)) return LOKADB_FAILED;
      if (session_.coming[i].is_followed && !publish(LOKADB_FACT_FOLLOWED, i, {}, options_.setting))
        return LOKADB_FAILED;
      if (effect.names_only && !publish(LOKADB_FACT_NAMING, i, effect.text)) return LOKADB_FAILED;
      scope.apply(effect);
    }
    return finish();
  }

 private:
  void begin() {
    session_.coming.clear();
    session_.statement_count = info_.statement_count;
    session_.is_blind = info_.is_whole == 0;
    if (session_.ask == SessionState::Ask::Asked) session_.ask = SessionState::Ask::ToAsk;  // decided anew
    // What a transaction has named holds in it to its end, whatever a reload has changed meanwhile.
    bool is_in_transaction = info_.transaction_status != 'I' && session_.options_number != 0;
    if (session_.options_number == tenant_.options_number || is_in_transaction) return;
    // The first batch, or the setting may be another one now.
    session_.options_number = tenant_.options_number;
    session_.scope = {};
    lokadb_string start = host->setting(batch_, lent(options_.setting));
    session_.has_start_value = start.data != nullptr;
    session_.scope.set_default(view(start));
    session_.ask = SessionState::Ask::ToAsk;
    session_.is_refused = false;
  }

  // --- reading

  int read() {
    std::vector<SessionState::Coming> coming;
    bool matters = false;
    for (std::uint32_t i = 0; i < info_.statement_count; ++i) {
      lokadb_statement s{};
      s.struct_size = sizeof s;
      if (host->statement(batch_, i, &s) != LOKADB_OK) return LOKADB_FAILED;
      if (s.form == LOKADB_SIMPLE && split(i, s) != LOKADB_OK) return LOKADB_FAILED;
      SessionState::Coming& one = coming.emplace_back();
      if (s.form == LOKADB_OTHER || s.form == LOKADB_FUNCTION_CALL) {
        one.is_seen = false;
        matters = true;
        continue;
      }
      if (!route::may_name(view(s.text))) continue;
      if (read_statement(i, s, one) != LOKADB_OK) return LOKADB_FAILED;
      if (out_.kind == LOKADB_REFUSE) return LOKADB_OK;
      matters = matters || one.is_followed || one.effect.kind != Kind::None;
    }
    if (matters) session_.coming = std::move(coming);
    session_.statement_count = info_.statement_count;
    return LOKADB_OK;
  }

  bool is_readable(std::string_view text) const { return sql::is_readable(text, view(info_.client_encoding)); }

  int split(std::uint32_t index, lokadb_statement& s) {
    if (!sql::may_be_several(view(s.text)) || !is_readable(view(s.text))) return LOKADB_OK;
    std::vector<std::size_t> begins = sql::begins_of(sql::parse_sql(view(s.text), s.is_standard_strings != 0));
    if (begins.size() < 2) return LOKADB_OK;
    if (host->split(batch_, index, begins.data(), static_cast<std::uint32_t>(begins.size())) != LOKADB_OK)
      return LOKADB_FAILED;
    host->batch_info(batch_, &info_);
    return host->statement(batch_, index, &s);
  }

  int read_statement(std::uint32_t index, const lokadb_statement& s, SessionState::Coming& one) {
    NamingEffect& effect = one.effect;
    std::string_view text = view(s.text);
    if (!is_readable(text)) return read_unreadable(text, effect);
    sql::TemplatePtr known = tenant_.templates.get(text, s.is_standard_strings != 0, session_.lifted);
    if (known->parsed.statements.size() != 1) {  // empty, or the server may know a form that is not known here
      if (!known->parsed.error.empty()) effect.kind = Kind::Unseen;
      return LOKADB_OK;
    }
    const sql::Statement& statement = known->parsed.statements.front();
    if (statement.kind == sql::StatementClass::Ddl) {
      if (route::has_set_config(text)) effect.kind = Kind::Unseen;
      return LOKADB_OK;
    }
    std::vector<catalog::Parameter> parameters;
    for (std::uint32_t n = 0; n < s.parameter_count; ++n) {
      lokadb_parameter p{};
      p.struct_size = sizeof p;
      if (host->parameter(batch_, index, n, &p) != LOKADB_OK) return LOKADB_FAILED;
      parameters.push_back({view(p.value), p.declared_type, p.is_binary != 0, p.is_null != 0});
    }
    route::LiteralList literals;
    literals.read(text, session_.lifted);
    bool is_bound = s.form != LOKADB_PARSE;
    bool has_utf8 = view(info_.client_encoding) == "UTF8";
    effect = route::naming_effect(statement, {literals.view(), parameters}, options_.setting, is_bound, has_utf8);
    judge(effect);
    one.is_followed = effect.kind == Kind::Set;
    bool is_executed = s.form == LOKADB_SIMPLE || s.is_executed != 0;
    if (is_executed || effect.kind == Kind::None) return LOKADB_OK;
    if (is_bound) session_.has_open_portal = true;
    effect = {};
    return LOKADB_OK;
  }

  // In an encoding in which a byte of a character may look like a letter or quote.
  int read_unreadable(std::string_view text, NamingEffect& effect) {
    std::string low = lower(text);
    if (low.find(options_.setting) == low.npos) {
      effect.kind = Kind::Unseen;
      return LOKADB_OK;
    }
    refuse(Reason::NotUnderstood, "0A000",
           "lokadb: a statement about " + options_.setting + " cannot be read in client_encoding " +
               std::string(view(info_.client_encoding)),
           "Send such statements in UTF8, or in ASCII alone.");
    return LOKADB_OK;
  }

  void judge(const NamingEffect& effect) {
    if (effect.kind == Kind::NotUnderstood)
      return refuse(
          Reason::NotUnderstood, "0A000",
          "lokadb: the statement sets " + options_.setting + " in a form that is not understood: " + effect.text,
          "SET LOCAL " + options_.setting + " = ..., or SELECT set_config('" + options_.setting +
              "', ..., true) in a statement of its own.");
    if (options_.is_local_only && effect.is_for_session())
      refuse(Reason::SessionValue, "0A000",
             "lokadb: " + options_.setting +
                 " can only be set for a transaction: a value of the session would "
                 "outlive it",
             "SET LOCAL " + options_.setting +
                 " = ..., or set_config with true as third argument. ([tenant] "
                 "local_only = 0 allows values of the session.)");
  }

  void refuse(Reason reason, const char* state, std::string message, std::string hint) {
    session_.message = std::move(message);
    session_.hint = std::move(hint);
    out_.kind = LOKADB_REFUSE;
    out_.reason = static_cast<std::uint32_t>(reason);
    std::copy_n(state, 5, out_.sqlstate);
    out_.message = lent(session_.message);
    out_.hint = lent(session_.hint);
  }

  // --- telling

  bool publish(std::uint32_t kind, std::uint32_t statement, std::string_view value, std::string_view name = {}) {
    lokadb_fact fact{};
    fact.struct_size = sizeof fact;
    fact.kind = kind;
    fact.statement = statement;
    fact.name = lent(name);
    fact.value = lent(value);
    fact.reason = static_cast<std::uint32_t>(Reason::Unseen);
    return host->publish(batch_, &fact) == LOKADB_OK;
  }

  bool publish_scope(std::uint32_t statement, const route::TenantScope& scope) {
    bool is_eligible = scope.is_known() && !scope.is_unseen();
    if (!is_eligible && !publish(LOKADB_FACT_NOT_ELIGIBLE, statement, {})) return false;
    if (!scope.is_known()) return publish(LOKADB_FACT_NAMED, statement, {});
    std::string_view value = scope.value();
    if (value.empty()) return true;
    has_named_ = true;
    has_all_ = has_all_ || value == "*";
    bool is_there = scope.is_local() || info_.is_session_pooled != 0;
    return publish(LOKADB_FACT_NAMED, statement, value, is_there ? std::string_view() : options_.setting);
  }

  int finish() {
    if (has_named_ && options_.logs_mismatch && !publish(LOKADB_FACT_MISMATCH_LOGGED, LOKADB_WHOLE_BATCH, {}))
      return LOKADB_FAILED;
    bool may_name_all = has_all_ && options_.all_roles.contains(view(info_.role));
    return !may_name_all || publish(LOKADB_FACT_ALL_ALLOWED, LOKADB_WHOLE_BATCH, {}) ? LOKADB_OK : LOKADB_FAILED;
  }

  Tenant& tenant_;
  const Options& options_;
  lokadb_batch* batch_;
  lokadb_verdict& out_;
  SessionState& session_;
  lokadb_batch_info info_{};
  bool has_named_ = false, has_all_ = false;
};

// Tags of commands that change the value, or how long it lasts, in a statement whose text was not there.
void observe_unseen(SessionState& session, std::string_view tag) {
  if (tag == "COMMIT") return session.scope.transaction_ended(true);
  for (std::string_view word : {"SET", "RESET", "DISCARD ALL", "SAVEPOINT", "RELEASE", "ROLLBACK"})
    if (tag == word) return session.scope.lose_track();
  if (session.has_open_portal && (tag.empty() || tag.starts_with("SELECT"))) session.scope.lose_track();
}

}  // namespace

int inspect(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict) {
  return Inspection(tenant, batch, verdict).run();
}

int publish_again(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict) {
  return Inspection(tenant, batch, verdict).publish_all();
}

void observe(SessionState& session, const lokadb_event& event) {
  if (event.kind == LOKADB_TRANSACTION_ENDED) {
    session.has_open_portal = false;
    return session.scope.transaction_ended(event.outcome == LOKADB_COMMITTED);
  }
  if (event.kind != LOKADB_STATEMENT_ENDED || event.sqlstate.size != 0) return;
  std::string_view tag = view(event.tag);
  if (session.is_blind) return observe_unseen(session, tag);
  if (event.statement >= session.statement_count) return session.scope.lose_track();
  if (event.statement >= session.coming.size()) return;
  const SessionState::Coming& one = session.coming[event.statement];
  if (!one.is_seen) return observe_unseen(session, tag);
  session.scope.apply(one.effect, tag != "ROLLBACK");
}

}  // namespace lokadb::tenant
