// What becomes of a batch: its statements are read, keys whose organization must be known are published for the plugin
// refs, and then src/route says where each statement goes.
#include <algorithm>
#include <utility>

#include "cloud.h"
#include "direct.h"
#include "found_keys.h"
#include "named.h"
#include "objections.h"
#include "refusals.h"
#include "router.h"
#include "sql/lexer.h"
#include "unread.h"

namespace lokadb::router {

namespace {

using route::Path;
using route::Reason;
using route::Verdict;

using catalog::kTextOid;

class Decision {
 public:
  Decision(Router& router, lokadb_batch* batch, lokadb_verdict* out)
      : router_(router),
        batch_(batch),
        out_(out),
        session_(*static_cast<SessionState*>(host->slot(batch))),
        state_(session_.batch),
        named_(batch) {
    info_.struct_size = sizeof info_;
    host->batch_info(batch, &info_);
  }

  int run() {
    if (!state_.is_read) {
      if (!has_work()) return without_catalog();
      if (info_.target_fault.size != 0) note_fault();
      if (!know_settings()) return ask_settings();
      if (read() != LOKADB_OK) return LOKADB_FAILED;
    }
    return judge();
  }

 private:
  // --- reading

  // Of the batch that was to go direct a moment ago.
  void note_fault() {
    if (session_.last_organization.empty()) return;
    router_.tallies.of(view(info_.database), session_.last_organization).set_fault(view(info_.target_fault));
  }

  // Whether the session as such is off the direct path, and a line in the log when that begins.
  void note_session() {
    Reason off = state_.not_direct;
    if (off != Reason::SessionPooling && off != Reason::NotUnderstood) off = Reason::None;
    if (off == std::exchange(session_.off, off) || off == Reason::None) return;
    router_.sessions_off.write(
        "no statement of a session of " + std::string(view(info_.role)) + " in " + std::string(view(info_.database)) +
        " goes direct: " + std::string(route::info(off).text) + " (" + std::string(route::info(off).id) + ")");
  }

  void count_organization(const Verdict& v) {
    if (v.organization.empty() || state_.known.catalog->organization(v.organization) == nullptr) return;
    Tally& tally = router_.tallies.of(view(info_.database), v.organization);
    (out_->kind == LOKADB_DIRECT  ? tally.direct
     : out_->kind == LOKADB_CLOUD ? tally.cloud
                                  : tally.refused)
        .fetch_add(1, std::memory_order_relaxed);
    if (out_->kind == LOKADB_DIRECT) session_.last_organization = v.organization;
  }

  bool has_work() {
    state_.known = router_.catalogs.find(view(info_.database));
    if (state_.known.catalog == nullptr) return false;
    return !state_.known.catalog->tables().empty();
  }

  // Nothing is known of the database (yet), or it has no tables under LokaDB.
  int without_catalog() {
    session_.off = state_.known.is_unknown() ? Reason::CatalogStale : Reason::None;
    if (info_.transaction_status != 'E')
      if (auto refusal = objections().without_catalog()) return refuse(std::move(*refusal));
    return named_.set_in_front(batch_, info_, *out_);
  }

  bool know_settings() {
    state_.settings = router_.role_settings.find(view(info_.database), view(info_.role), info_.servers);
    if (state_.settings != nullptr || state_.settings_step == UINT32_MAX) return state_.settings != nullptr;
    std::shared_ptr<RoleFacts> found = role_facts(batch_, state_.settings_step);
    if (found == nullptr) return false;
    if (info_.is_session_pooled != 0) {
      found->settings.clear();
      session_.facts_are_of = state_.known.catalog;
      state_.settings = session_.own_facts = std::move(found);
    } else {
      state_.settings =
          router_.role_settings.put(view(info_.database), view(info_.role), info_.servers, std::move(*found));
    }
    return true;
  }

  // In a transaction, or on a server that keeps what the client has set, settings could be other than after login. What
  // the role may do with the tables is asked there as well, for this session alone.
  int ask_settings() {
    if (info_.is_session_pooled != 0 && session_.own_facts != nullptr &&
        (session_.facts_are_of == state_.known.catalog || info_.transaction_status != 'I')) {
      state_.settings = session_.own_facts;
      return read() == LOKADB_OK ? judge() : LOKADB_FAILED;
    }
    if (info_.transaction_status != 'I' || session_.has_other_role) {
      if (info_.is_session_pooled == 0 && !session_.has_other_role)
        state_.settings = router_.role_settings.last(view(info_.database), view(info_.role));
      if (state_.settings == nullptr) state_.settings = std::make_shared<RoleFacts>();
      return read() == LOKADB_OK ? judge() : LOKADB_FAILED;
    }
    std::string sql = role_facts_query(*state_.known.catalog);
    lokadb_step step{};
    step.struct_size = sizeof step;
    step.sql = lent(sql);
    state_.settings_step = host->add_step(batch_, &step);
    if (state_.settings_step == UINT32_MAX) return LOKADB_FAILED;
    out_->kind = LOKADB_ASK;
    return LOKADB_OK;
  }

  std::string_view search_path() const {
    if (lokadb_string own = host->setting(batch_, lent(kSearchPath)); own.data != nullptr) return view(own);
    for (const auto& [name, value] : state_.settings->settings)
      if (name == kSearchPath) return value;
    return "\"$user\", public";
  }

  void know_surroundings() {
    std::string_view path = search_path();
    SurroundingsPtr& known = session_.surroundings;
    if (known == nullptr || known->search_path != path)
      known = Surroundings::make(view(info_.database), view(info_.role), path);
  }

  Reason why_not_direct() const {
    if (info_.is_whole == 0) return Reason::TooLarge;
    if (info_.transaction_status != 'I') return Reason::InTransaction;
    if (info_.ends_in_flush != 0) return Reason::EndsInFlush;
    if (info_.is_session_pooled != 0) return Reason::SessionPooling;
    if (!sql::is_ascii_safe_encoding(view(info_.client_encoding))) return Reason::NotUnderstood;
    if (is_row_security_off()) return Reason::SettingChanged;
    return reason_of_fault(view(info_.target_fault));
  }

  // The client's own wish, if it is followed (track_extra_parameters). In the cloud its reads are refused then; there
  // is no row security in the organization's database.
  bool is_row_security_off() const {
    constexpr std::string_view kName = "row_security";
    lokadb_string own = host->own_setting(batch_, lent(kName));
    return own.data != nullptr && view(own) != "on";
  }

  static Reason reason_of_fault(std::string_view fault) {
    auto tells = [&](std::string_view word) { return fault.find(word) != std::string_view::npos; };
    if (fault.empty()) return Reason::None;
    if (tells("connect")) return Reason::ConnectionFailed;
    if (tells("fails there")) return Reason::StatementFailed;
    return tells("differ") ? Reason::CatalogDrift : Reason::DatabaseNotUsable;
  }

  int read() {
    state_.is_read = true;
    state_.not_direct = why_not_direct();
    note_session();
    // The server says so itself.
    if (info_.transaction_status == 'E') return LOKADB_OK;
    if (info_.is_whole == 0) return LOKADB_OK;
    know_surroundings();
    for (std::uint32_t i = 0; i < info_.statement_count; ++i) {
      lokadb_statement s{};
      s.struct_size = sizeof s;
      if (host->statement(batch_, i, &s) != LOKADB_OK) return LOKADB_FAILED;
      // A Parse or Describe alone is the cloud's to answer, and what is not known is not looked into.
      if (s.form != LOKADB_SIMPLE && s.form != LOKADB_BIND && state_.not_direct == Reason::None)
        state_.not_direct = Reason::SessionCommand;
      if (s.form == LOKADB_OTHER || s.form == LOKADB_FUNCTION_CALL) {
        state_.has_textless = true;
        state_.calls_function |= s.form == LOKADB_FUNCTION_CALL;
        state_.has_unread_portals |= s.is_unread != 0;
        continue;
      }
      if (!sql::is_readable(view(s.text), view(info_.client_encoding))) {
        note_unread(i, s);
        continue;
      }
      if (read_statement(i, s) != LOKADB_OK) return LOKADB_FAILED;
    }
    return LOKADB_OK;
  }

  void note_unread(std::uint32_t index, const lokadb_statement& s) {
    bool is_run = s.form == LOKADB_SIMPLE || s.form == LOKADB_BIND;
    bool has_modes = s.form == LOKADB_SIMPLE && named_.is_held(index) && begins_with_modes(view(s.text));
    if (is_run && (has_modes || may_read_tables(view(s.text)))) state_.unread.push_back(index);
  }

  PieceValues& fresh_values() {
    if (state_.values_used == state_.values.size()) state_.values.emplace_back();
    return state_.values[state_.values_used++];
  }

  // Of what is not a SELECT all rows are there after the first Execute, whatever its limit.
  static bool stays_open(const lokadb_statement& s, const Text& text) {
    if (s.is_kept != 0 || s.row_limit == 0) return s.is_kept != 0;
    const auto& statements = text.facts->parsed.statements;
    return statements.size() == 1 && statements.front().kind == sql::StatementClass::Select;
  }

  int read_statement(std::uint32_t index, const lokadb_statement& s) {
    PieceValues& values = fresh_values();
    values.parameters.clear();
    for (std::uint32_t n = 0; n < s.parameter_count; ++n) {
      lokadb_parameter p{};
      p.struct_size = sizeof p;
      if (host->parameter(batch_, index, n, &p) != LOKADB_OK) return LOKADB_FAILED;
      values.parameters.push_back({view(p.value), p.declared_type, p.is_binary != 0, p.is_null != 0});
    }
    const CatalogPtr& catalog = state_.known.catalog;
    TextPtr text;
    const route::LiteralList* literals = &values.literals;
    if (s.known_as != 0) {
      values.prepared = router_.analyses.prepared(s.known_as, view(s.text), s.is_standard_strings != 0, catalog,
                                                  session_.surroundings, session_.scratch);
      text = values.prepared->text;
      literals = &values.prepared->literals;
    } else {
      text = router_.analyses.get(view(s.text), s.is_standard_strings != 0, catalog, session_.surroundings,
                                  session_.scratch);
      values.literals.read(view(s.text), session_.scratch.lifted);
    }
    if (text->analyses.empty() && state_.not_direct == Reason::None) state_.not_direct = Reason::SyntaxError;
    // Newer servers may know it.
    if (const std::string& error = text->facts->parsed.error; !error.empty()) {
      state_.syntax_error = error;
      note_unread(index, s);
    }
    // It goes wherever the others go.
    if (text->analyses.size() == 1 && text->analyses[0].sets_locally && named_.is_naming(index)) return LOKADB_OK;
    if (text->analyses.size() > 1 && state_.not_direct == Reason::None) state_.not_direct = Reason::NotUnderstood;
    const std::string* name = named_.value_for(index);
    std::optional<std::string> named = name != nullptr ? std::optional(*name) : std::nullopt;
    for (std::size_t n = 0; n < text->analyses.size(); ++n)
      state_.pieces.push_back({text, n, index, s.form == LOKADB_PARSE, s.has_named_portal != 0, stays_open(s, *text),
                               named, literals, values.parameters});
    return LOKADB_OK;
  }

  // --- judging

  route::Session session_for(const Piece& piece) const {
    route::Session s;
    s.not_eligible = state_.not_direct;
    s.catalog_is_stale = state_.known.is_stale;
    s.is_rejecting = router_.options.rejects;
    if (s.is_rejecting) s.is_allowed = router_.options.allowed.contains(fingerprint(piece));
    s.has_utf8 = view(info_.client_encoding) == "UTF8";
    named_.tell(piece.statement, *state_.known.catalog, s);
    return s;
  }

  int judge() {
    FoundKeys keys(batch_, state_);
    if (!keys.is_complete()) return LOKADB_OK;  // the plugin refs is asking
    std::vector<Verdict>& verdicts = state_.verdicts;
    verdicts.clear();
    std::vector<route::Key> look_ups;
    for (const Piece& piece : state_.pieces) {
      if (auto refusal = objections().to_naming(piece)) return refuse(std::move(*refusal));
      if (piece.is_parse) {  // decided when it is bound
        verdicts.emplace_back().whose = Verdict::Whose::NoTables;
        verdicts.back().reason = Reason::SessionCommand;
        continue;
      }
      verdicts.push_back(
          route::decide(piece.analysis(), {piece.literals->view(), piece.parameters}, session_for(piece), keys));
      Verdict& v = verdicts.back();
      if (v.path == Path::Refuse) return refuse(piece, v);
      if (v.path == Path::LookUp && !wants_look_ups(piece)) {
        v = Verdict{};
        v.reason = Reason::OrganizationUnknown;
      }
      if (v.path == Path::LookUp) look_ups.insert(look_ups.end(), v.look_ups.begin(), v.look_ups.end());
    }
    if (!look_ups.empty()) return want(look_ups);
    int answer = settle(verdicts);
    auto known =
        std::find_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return !v.organization.empty(); });
    if (answer == LOKADB_OK && known != verdicts.end()) count_organization(*known);
    return answer;
  }

  // Where all are at home, and none is on its way, nothing hangs on whose rows they are, unless only the local part
  // takes the statement.
  bool wants_look_ups(const Piece& piece) const {
    if (router_.options.rejects || !piece.analysis().local_parts.empty()) return true;
    const auto& all = state_.known.catalog->organizations();
    return std::any_of(all.begin(), all.end(), [](const auto& o) { return o.profile != catalog::Profile::Local; });
  }

  int want(const std::vector<route::Key>& look_ups) {
    for (const route::Key& key : look_ups) {
      const std::string& table = state_.known.catalog->tables()[key.table].quoted;
      if (state_.wanted_index.contains({table, key.text})) continue;
      state_.wanted.push_back({host->fact_count(batch_), key.text});
      const auto& wanted = state_.wanted.back();
      state_.wanted_index.emplace(std::pair(std::string_view(table), std::string_view(wanted.key)),
                                  state_.wanted.size() - 1);
      lokadb_fact fact{};
      fact.struct_size = sizeof fact;
      fact.kind = LOKADB_FACT_KEY_WANTED;
      fact.statement = LOKADB_WHOLE_BATCH;
      fact.name = lent(table);
      fact.value = lent(key.text);
      fact.type = kTextOid;
      if (host->publish(batch_, &fact) != LOKADB_OK) return LOKADB_FAILED;
    }
    out_->kind = LOKADB_ASK;
    return LOKADB_OK;
  }

  int settle(const std::vector<Verdict>& verdicts) {
    for (std::size_t i = 0; i < verdicts.size(); ++i)
      if (!verdicts[i].about.empty() && state_.told_about.insert(state_.pieces[i].statement).second &&
          publish_about(batch_, state_.pieces[i].statement, verdicts[i]) != LOKADB_OK)
        return LOKADB_FAILED;
    Reason reason = why_cloud(verdicts);
    if (reason == Reason::None) reason = go_direct(router_, batch_, state_, verdicts, *out_, failed_);
    if (failed_) return LOKADB_FAILED;
    if (out_->kind == LOKADB_DIRECT) return because(verdicts.front().reason);
    if (auto refusal = objections().in_cloud(verdicts)) return refuse(std::move(*refusal));
    out_->kind = LOKADB_CLOUD;
    out_->commits = commits();
    state_.organization = only_organization(verdicts);
    out_->organization = lent(state_.organization);
    if (add_cloud_work(router_, batch_, session_, verdicts) != LOKADB_OK) return LOKADB_FAILED;
    return because(reason);
  }

  Objections objections() const { return {router_.options, batch_, info_, state_, named_}; }

  int refuse(Refusal refusal) {
    out_->kind = LOKADB_REFUSE;
    std::copy_n(refusal.sqlstate.data(), std::min<std::size_t>(refusal.sqlstate.size(), 5), out_->sqlstate);
    state_.message = std::move(refusal.message);
    state_.hint = std::move(refusal.hint);
    out_->message = lent(state_.message);
    out_->hint = lent(state_.hint);
    return because(refusal.reason);
  }

  // Whom all of them are about, as far as that is known; else nobody.
  static std::string only_organization(const std::vector<Verdict>& verdicts) {
    std::string found;
    for (const Verdict& v : verdicts) {
      if (v.whose != Verdict::Whose::One) continue;
      if (!found.empty() && found != v.organization) return {};
      found = v.organization;
    }
    return found;
  }

  bool is_unread() const { return info_.is_whole == 0 || state_.has_unread_portals || !state_.unread.empty(); }

  std::uint32_t commits() {
    bool is_behind_flush = info_.transaction_status == 'T' && session_.before.is_outside_block;
    bool is_outside = info_.transaction_status == 'I' || is_behind_flush;
    // What cannot be read may have COMMIT in it.
    bool is_own = (is_behind_flush && session_.before.sync_commits) ||
                  (is_unread() && info_.transaction_status != 'E') || (state_.has_textless && is_outside);
    bool has_commit = false;
    for (const Piece& piece : state_.pieces) {
      if (piece.is_parse) continue;
      has_commit |= piece.commits();
      is_own |= piece.may_write() && is_outside;
      is_outside = piece.is_outside_after(is_outside);
    }
    session_.after = {is_unread() || (info_.ends_in_flush != 0 && is_outside), is_own};
    return has_commit ? LOKADB_COMMITS_TRANSACTION : is_own ? LOKADB_COMMITS_ITSELF : LOKADB_COMMITS_NOTHING;
  }

  // None: it can go direct as a whole.
  Reason why_cloud(const std::vector<Verdict>& verdicts) const {
    if (verdicts.empty()) return state_.not_direct == Reason::None ? Reason::SessionCommand : state_.not_direct;
    const Verdict& first = verdicts.front();
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const Verdict& v = verdicts[i];
      if (v.path != Path::Direct) return v.reason;
      if (v.organization != first.organization || v.generation != first.generation) return Reason::SeveralOrganizations;
    }
    return Reason::None;
  }

  int because(Reason reason) {
    out_->reason = static_cast<std::uint32_t>(reason);
    return LOKADB_OK;
  }

  int refuse(const Piece& piece, const Verdict& v) {
    refuse(refusal_of(piece.analysis(), v, fingerprint(piece)));
    count_organization(v);
    router_.refusals.write("a statement of " + std::string(view(info_.role)) + " in " +
                           std::string(view(info_.database)) +
                           " is refused: " + std::string(route::info(v.reason).text) + " (" +
                           std::string(route::info(v.reason).id) + "), fingerprint " + fingerprint(piece));
    return LOKADB_OK;
  }

  static const std::string& fingerprint(const Piece& piece) { return piece.text->fingerprint; }

  Router& router_;
  lokadb_batch* batch_;
  lokadb_verdict* out_;
  SessionState& session_;
  BatchState& state_;
  lokadb_batch_info info_{};
  bool failed_ = false;  // a call of the host has
  NamedFacts named_;
};

}  // namespace

int decide(Router& router, lokadb_batch* batch, lokadb_verdict* verdict) {
  return Decision(router, batch, verdict).run();
}

}  // namespace lokadb::router
