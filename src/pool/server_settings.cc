// What clients leave in a session: settings that follow them are set on the way in and learnt on the way out, where the
// server does not report them by itself; anything else goes, or stays with its client (pin_session_state).
#include "base/log.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr int kSetAttempts = 5;
constexpr std::string_view kQueryCanceled = "57014";

// The settings that are not reported, as columns of one row.
std::string select_settings(const TrackedNames& tracked, const std::vector<bool>& is_reported) {
  std::string sql;
  for (std::size_t i = 0; i < tracked.size(); ++i)
    if (!is_reported[i])
      sql += (sql.empty() ? "SELECT pg_catalog.current_setting('" : ", pg_catalog.current_setting('") +
             tracked.name(i) + "', true)";
  return sql.empty() ? sql : sql + ";";
}
}  // namespace

bool ServerConnection::has_connect_query() const {
  const auto& query = pool.database.config->connect_query;
  return query && !query->empty();
}

// ------------------------------------------------------------------ on the way in

bool ServerConnection::set_parameters_for(ClientSession& client) {
  // The first time that something unreported is to be set: what it was has to be known, to put it back.
  for (std::size_t i = 0; i < is_reported_.size() && !knows_defaults_; ++i) {
    if (is_reported_[i] || !client.parameters()->values()[i]) continue;
    read_settings(Step::ReadDefaults, false);
    return true;
  }
  std::string sql = set_statements(pooler.tracked, *client.parameters(), *defaults_, *parameters_);
  if (sql.empty()) {
    agrees_with_ = client.parameters();
    return false;
  }
  log_line(LogLevel::Debug, "%s varcache_apply: %s", log_name().c_str(), sql.c_str());
  start_step(Step::SetParameters, sql);
  return true;
}

void ServerConnection::parameters_were_set() {
  if (step_failed_ && step_error_.state.text() == kQueryCanceled && ++set_attempts_ < kSetAttempts) {
    // By the last client's statement_timeout, most likely, which is what had to be set.
    if (client_ != nullptr && set_parameters_for(*client_)) return;
  }
  set_attempts_ = 0;
  if (step_failed_) {
    log_line(LogLevel::Error, "varcache_apply failed: %s", step_error_.log_text().c_str());
    return close("invalid server parameter");
  }
  if (client_ == nullptr) return;
  // What is not reported is now as it was asked for.
  ParameterValues values = parameters_->values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_reported_[i]) continue;
    const auto& wish = client_->parameters()->values()[i];
    values[i] = wish ? wish : defaults_->values()[i];
    if (pooler.tracked.name(i) == "search_path" && values[i] && values[i]->find("pg_temp") != std::string::npos)
      note_residue(residue::kState);  // tables that are made there do not say that they are temporary
  }
  parameters_ = intern_parameters(std::move(values));
  // From now on in the server's spelling, so that the same SET is not sent again and again.
  ParameterSetPtr spelled = in_spelling_of(*parameters_, *client_->parameters());
  for (std::size_t i = 0; i < is_reported_.size(); ++i) {
    const auto &wish = client_->parameters()->values()[i], &canonical = spelled->values()[i];
    if (wish == canonical || !canonical) continue;
    if (wish)
      log_line(LogLevel::Debug, "%s varcache_set_canonical: setting %s to its canonical version %s -> %s",
               client_->log_name().c_str(), pooler.tracked.name(i).c_str(), wish->c_str(), canonical->c_str());
    // Its welcome had the client's own spelling.
    if (is_reported_[i]) client_->tell_parameter(pooler.tracked.name(i), *canonical);
  }
  client_->set_parameters(std::move(spelled));
  agrees_with_ = client_->parameters();
  client_->parameters_set(*this);
}

// ------------------------------------------------------------------ on the way out

bool ServerConnection::settle_residue() {
  bool has_state = (residue_ & (residue::kState | residue::kLasting)) != 0;
  if (is_pinned_ || (has_state && pooler.options().pin_session_state)) {
    is_pinned_ = true;
    return true;
  }
  if ((residue_ & residue::kSettings) == 0) return false;
  if (!client_->set_state(ClientEvent::ServerToAsk)) {
    close("illegal state");
    return true;
  }
  // A default that nobody has asked for yet is found by RESET.
  read_settings(Step::ReadSettings, !knows_defaults_);
  return true;
}

void ServerConnection::read_settings(Step step, bool with_defaults) {
  std::string sql = select_settings(pooler.tracked, is_reported_);
  if (with_defaults && !sql.empty()) {
    std::string again = sql;
    for (std::size_t i = 0; i < is_reported_.size(); ++i)
      if (!is_reported_[i]) sql += "RESET " + pooler.tracked.name(i) + ";";
    sql += again;
  }
  start_step(step, sql);
}

bool ServerConnection::handle_settings_answer(Bytes in, std::size_t total, std::size_t& used) {
  if (in.size() < total) return false;
  used = total;
  MessageReader reader(in.subspan(kHeaderSize, total - kHeaderSize));
  auto& row = rows_.emplace_back(pooler.tracked.size());
  std::size_t column = 0;
  std::size_t columns = reader.u16();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (is_reported_[i] || column++ == columns) continue;
    std::uint32_t length = reader.u32();
    if (length != 0xffffffff) row[i] = std::string(as_text(reader.take(length)));
  }
  if (column == columns && reader.finished()) return true;
  close("unexpected answer about settings");
  return false;
}

void ServerConnection::settings_step_finished(Step step) {
  if (step == Step::SetParameters) return parameters_were_set();
  if (client_ == nullptr && step == Step::ReadSettings) return give_back();  // it went meanwhile
  bool is_login = client_ == nullptr;
  if (!step_failed_ && status_ == 'I') {
    step == Step::ReadDefaults ? defaults_read() : settings_were_read();
  } else if (!is_login) {
    log_line(LogLevel::Error, "%s settings could not be read: %s", log_name().c_str(), step_error_.log_text().c_str());
    return close("settings could not be read");
  }
  if (state() == ServerState::Closed) return;
  if (is_login) {
    return login_is_over();
  }
  if (step == Step::ReadSettings) return client_->settings_read();
  if (!set_parameters_for(*client_)) client_->parameters_set(*this);
}

void ServerConnection::defaults_read() {
  ParameterValues values = defaults_->values();
  ParameterValues now = parameters_->values();
  for (std::size_t i = 0; i < values.size() && !rows_.empty(); ++i)
    if (!is_reported_[i]) now[i] = values[i] = rows_.front()[i];
  defaults_ = intern_parameters(std::move(values));
  parameters_ = intern_parameters(std::move(now));
  knows_defaults_ = true;
}

void ServerConnection::settings_were_read() {
  residue_ &= static_cast<Residue>(~residue::kSettings);
  agrees_with_ = nullptr;
  ParameterValues found = rows_.empty() ? ParameterValues(is_reported_.size()) : rows_.front();
  bool were_put_back = rows_.size() > 1;  // by the RESET that found the defaults
  if (were_put_back) {
    rows_.erase(rows_.begin());
    defaults_read();
  }
  const ParameterValues& defaults = defaults_->values();
  const ParameterValues& at_start = client_->startup_parameters()->values();
  ParameterValues wishes = client_->parameters()->values();
  ParameterValues now = parameters_->values();
  bool is_reset = (residue_ & residue::kReset) != 0;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const auto& value = is_reported_[i] ? now[i] : found[i];
    if (is_reset && value == defaults[i]) {
      // RESET goes to what the server's session began with; the client's began with something of its own.
      if (is_reported_[i] && at_start[i] && at_start[i] != value)
        client_->tell_parameter(pooler.tracked.name(i), *at_start[i]);
      wishes[i] = at_start[i];
    } else if (!is_reported_[i] && value != now[i]) {
      wishes[i] = value;
    }
    if (!is_reported_[i] && !were_put_back) now[i] = found[i];
  }
  parameters_ = intern_parameters(std::move(now));
  client_->set_parameters(intern_parameters(std::move(wishes)));
}

// to_defaults: else what is not reported is not known any more.
void ServerConnection::settings_were_reset(bool to_defaults) {
  agrees_with_ = nullptr;
  ParameterValues now = parameters_->values();
  for (std::size_t i = 0; i < now.size(); ++i)
    if (!is_reported_[i]) now[i] = to_defaults ? defaults_->values()[i] : std::nullopt;
  parameters_ = intern_parameters(std::move(now));
}

void ServerConnection::note_tag(std::string_view tag) {
  // A PREPARE that is kept in mind is not one that has to go.
  if (tag == "PREPARE" && replies_.front().undo != nullptr) return;
  Residue found = residue_of_tag(tag, (residue_ & residue::kUnread) != 0);
  if (found != residue::kNone) note_residue(found);
}

}  // namespace lokadb
