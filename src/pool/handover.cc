// Online restart in the old process: what is written down of each connection.
#include "pool/handover.h"

#include <unistd.h>

#include "pool/client_login.h"
#include "pool/client_session.h"
#include "pool/handover_state.h"
#include "pool/routing.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {

// The pool, and what its user's logins have left in this process.
void write_pool(StateWriter& out, Pooler& pooler, Pool& pool) {
  out.text(pool.database.name);
  out.text(pool.user.name);
  out.text(origin_of(*pool.database.config));
  out.keys(pool.user.scram_keys);
  out.text(pool.user.scram_keys_secret);
  out.text(pool.looked_up_secret);
  out.keys(pool.looked_up_keys);
  out.flag(pool.welcome != nullptr);
  if (pool.welcome == nullptr) return;
  out.bytes(pool.welcome->untracked);
  out.parameters(pooler.tracked, pool.welcome->tracked);
}

}  // namespace

// Both look at one connection alone: whether the other end of a link may go, too, is asked by may_move().
bool Handover::is_movable(ClientSession& c) {
  if (c.stream_.ssl() != nullptr || !c.stream_.is_open() || c.stream_.has_unsent() || c.in_flight > 0) return false;
  return c.routing_ == nullptr || c.routing_->may_move();
}

bool Handover::is_movable(ServerConnection& s) {
  if (s.stream_.ssl() != nullptr || !s.stream_.is_open() || s.stream_.has_unsent() || s.in_flight > 0) return false;
  // What a greeting has told belongs to what plugins knew then.
  if (s.pool.database.is_target || s.sink_ != nullptr) return false;
  if (s.due_ != ServerConnection::Due::None || s.cancels_ > 0) return false;
  for (std::size_t i = 0; i < s.replies_.size(); ++i)
    if (s.replies_.at(i).is_refusal) return false;
  // Of our own queries those about settings go on, for which a client waits.
  return s.step_ == ServerConnection::Step::None ||
         (s.client_ != nullptr && s.is_setting_parameters() && s.rows_.empty() && !s.step_failed_);
}

bool Handover::may_move(ClientSession& c) {
  if (!is_movable(c)) return false;
  switch (c.state_) {
    case ClientState::Startup:
      return !c.login_ || !c.login_is_in_handshake();
    case ClientState::Welcome:
      return !c.is_linked();
    case ClientState::Idle:
    case ClientState::Waiting:
      return true;
    case ClientState::Preparing:
    case ClientState::Active:
    case ClientState::Leaving:
      return c.leg_.server != nullptr && may_move(*c.leg_.server);
    default:
      return false;
  }
}

bool Handover::may_move(ServerConnection& s) {
  if (!is_movable(s)) return false;
  if (s.state() == ServerState::Idle) return !s.is_obsolete();
  if (s.state() != ServerState::Active || s.client_ == nullptr) return false;
  ClientSession& c = *s.client_;
  return c.leg_.server == &s && is_movable(c) &&
         (c.state_ == ClientState::Preparing || c.state_ == ClientState::Active || c.state_ == ClientState::Leaving);
}

std::string Handover::state_of(ClientSession& c) {
  StateWriter out;
  out.text(kHandoverFormat);
  out.text("client");
  out.number(c.id);
  out.number(static_cast<std::uint64_t>(c.state_));
  out.bytes(c.input_.kept());
  out.signed_number(c.connect_time);
  out.signed_number(c.request_time);
  out.signed_number(c.born);
  out.signed_number(c.last_packet);
  if (c.state_ == ClientState::Startup) return out.take();
  write_pool(out, c.pooler, *c.pool_);
  out.text(c.user_->name);
  out.parameters(c.pooler.tracked, c.parameters_);
  out.parameters(c.pooler.tracked, c.startup_parameters_);
  out.bytes(c.cancel_key_.bytes());
  out.flag(c.takes_long_keys_);
  write_requests(out, c);
  out.flag(c.left_politely_);
  out.flag(c.is_condemned_);
  out.number(c.unnamed_server);
  out.signed_number(c.left_at_);
  out.signed_number(c.wait_started);
  out.number(c.statements_.size());
  c.statements_.for_each([&out](const std::string& name, const ClientStatements::Known& known) {
    out.text(name);
    out.statement(known.statement);
    out.number(known.rows);
  });
  out.flag(c.replication_ != nullptr);
  if (c.replication_) {
    out.number(static_cast<std::uint64_t>(c.replication_->mode));
    out.text(c.replication_->options);
  }
  return out.take();
}

// Where its stream of requests stands.
void Handover::write_requests(StateWriter& out, ClientSession& c) {
  out.number(c.marks_.position);
  out.number(c.marks_.start);
  out.number(c.body_left_);
  for (bool flag : {c.body_is_dropped_, c.streams_text_, c.streams_unnamed_}) out.flag(flag);
  out.text({c.tail_.data(), c.tail_size_});
  // Without plugins nobody has looked at how the batch began.
  bool is_amid_batch =
      c.routing_ == nullptr && c.is_linked() && c.leg_.server->has_outstanding() && c.marks_.position != c.marks_.start;
  out.flag(is_amid_batch);
  const UnnamedStatement* unnamed = c.routing_ != nullptr ? &c.routing_->unnamed() : nullptr;
  out.flag(unnamed != nullptr && unnamed->is_known);
  if (unnamed != nullptr && unnamed->is_known) out.bytes(unnamed->body);
  out.pairs(c.taken_parameters_);
  out.pairs(c.routing_ != nullptr ? c.routing_->saved() : TextPairs{});
}

std::string Handover::state_of(ServerConnection& s) {
  StateWriter out;
  out.text(kHandoverFormat);
  out.text("server");
  write_pool(out, s.pooler, s.pool);
  out.number(s.client_ != nullptr ? s.client_->id : 0);
  out.text(s.host_);
  out.bytes({reinterpret_cast<const std::byte*>(&s.address_.storage), s.address_.length});
  out.flag(s.is_obsolete());
  out.bytes(s.cancel_key_);
  out.number(s.backend_pid_);
  out.parameters(s.pooler.tracked, s.parameters_);
  out.parameters(s.pooler.tracked, s.defaults_);
  out.names(s.pooler.tracked, s.is_reported_);
  for (std::int64_t time :
       {s.connect_time, s.request_time, s.born, s.idle_since, s.query_started, s.xact_started, s.last_answer})
    out.signed_number(time);
  out.bytes(s.input_.kept());
  out.number(s.body_left_);
  out.number(static_cast<unsigned char>(s.status_));
  for (bool flag : {s.body_to_client_, s.is_busy_, s.skips_until_sync_, s.copy_in_, s.copies_both_ways_,
                    s.is_dedicated_, s.front_has_answer_, s.unnamed_is_of_batch_, s.has_served_, s.has_served_clients_,
                    s.knows_defaults_, s.is_pinned_, s.has_changed_tables_})
    out.flag(flag);
  out.number(s.residue_);
  out.number(s.unnamed_residue_);
  out.number(static_cast<std::uint64_t>(s.step_));
  out.signed_number(s.extra_ready_);
  out.number(s.id);
  out.number(s.unnamed_owner_);
  out.number(s.changes_);
  out.number(s.earlier_changes_);
  out.number(s.statements_.size());
  s.statements_.for_each([&out](const ServerStatements::Entry& entry) {
    out.statement(entry.statement);
    out.number(entry.rows);
  });
  write_replies(out, s);
  return out.take();
}

void Handover::write_replies(StateWriter& out, ServerConnection& s) {
  out.number(s.replies_.size());
  for (std::size_t i = 0; i < s.replies_.size(); ++i) {
    const Expected& e = s.replies_.at(i);
    out.number(static_cast<std::uint64_t>(e.request));
    for (bool flag : {e.for_client, e.name_is_taken, e.forgets_names, e.sets_unnamed, e.takes_unnamed,
                      e.rows_have_changed, e.asks_for_rows})
      out.flag(flag);
    out.number(e.sets_unnamed ? e.unnamed_before : 0);
    out.number(e.statement);
    out.flag(e.undo != nullptr);
    if (e.undo == nullptr) continue;
    out.text(e.undo->client_name);
    out.statement(e.undo->statement);
    for (bool flag : {e.undo->client_added, e.undo->client_removed, e.undo->server_added, e.undo->server_removed})
      out.flag(flag);
  }
}

void Handover::let_go(Pooler& pooler) {
  std::vector<ClientSession*> clients;
  std::vector<ServerConnection*> servers;
  pooler.for_each_client([&](ClientSession& c) {
    if (may_move(c)) clients.push_back(&c);
  });
  pooler.for_each_server([&](ServerConnection& s) {
    if (may_move(s)) servers.push_back(&s);
  });
  for (auto* c : clients) ::close(c->stream_.release());
  for (auto* s : servers) ::close(s->stream_.release());
}

}  // namespace lokadb
