#include "pool/handover.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "pool/client_login.h"
#include "pool/client_session.h"
#include "pool/handover_state.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {

constexpr std::string_view kFormat = "lokadb handover 1";
constexpr std::uint64_t kNobody = ~std::uint64_t{0};  // an id that no client will have

// What a server connection was made from; where the successor's entry says otherwise, it is obsolete.
std::string origin_of(const DatabaseConfig& c) {
  std::string hosts;
  for (const auto& host : c.hosts) hosts += host + ",";
  return c.dbname + "|" + hosts + "|" + std::to_string(c.port) + "|" + c.user.value_or("") + "|" +
         c.connect_query.value_or("");
}

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

// ------------------------------------------------------------------ the old process

bool Handover::may_move(const ClientSession& c) {
  if (c.stream_.ssl() != nullptr || !c.stream_.is_open() || c.stream_.has_unsent() || c.in_flight > 0) return false;
  switch (c.state_) {
    case ClientState::Startup:
      return !c.login_ || !c.login_is_in_handshake();
    case ClientState::Welcome:
      return !c.is_linked();
    case ClientState::Idle:
    case ClientState::Waiting:
      return true;
    case ClientState::Active:
    case ClientState::Leaving:
      return c.leg_.server != nullptr && may_move(*c.leg_.server);
    default:
      return false;
  }
}

bool Handover::may_move(const ServerConnection& s) {
  if (s.stream_.ssl() != nullptr || !s.stream_.is_open() || s.stream_.has_unsent() || s.in_flight > 0) return false;
  if (s.step_ != ServerConnection::Step::None || s.due_ != ServerConnection::Due::None || s.cancels_ > 0) return false;
  if (s.state() == ServerState::Idle) return !s.is_obsolete();
  if (s.state() != ServerState::Active || s.client_ == nullptr) return false;
  const ClientSession& c = *s.client_;
  return c.stream_.ssl() == nullptr && c.stream_.is_open() && !c.stream_.has_unsent() && c.in_flight == 0 &&
         (c.state_ == ClientState::Active || c.state_ == ClientState::Leaving);
}

std::string Handover::state_of(ClientSession& c) {
  StateWriter out;
  out.text(kFormat);
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
  out.bytes(c.cancel_key_);
  out.number(c.marks_.position);
  out.number(c.marks_.start);
  out.number(c.body_left_);
  out.flag(c.body_is_dropped_);
  out.flag(c.is_stalled_);
  out.flag(c.left_politely_);
  out.signed_number(c.left_at_);
  out.signed_number(c.wait_started);
  out.number(c.statements_.size());
  c.statements_.for_each([&out](const std::string& name, const StatementPtr& statement) {
    out.text(name);
    out.statement(statement);
  });
  out.flag(c.replication_ != nullptr);
  if (c.replication_) {
    out.number(static_cast<std::uint64_t>(c.replication_->mode));
    out.text(c.replication_->options);
  }
  return out.take();
}

std::string Handover::state_of(ServerConnection& s) {
  StateWriter out;
  out.text(kFormat);
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
  for (std::int64_t time :
       {s.connect_time, s.request_time, s.born, s.idle_since, s.query_started, s.xact_started, s.last_answer})
    out.signed_number(time);
  out.bytes(s.input_.kept());
  out.number(s.body_left_);
  out.number(static_cast<unsigned char>(s.status_));
  for (bool flag :
       {s.body_to_client_, s.is_busy_, s.skips_until_sync_, s.copy_in_, s.copies_both_ways_, s.is_dedicated_,
        s.leaves_state_, s.front_has_answer_, s.unnamed_is_of_batch_, s.has_served_, s.has_served_clients_})
    out.flag(flag);
  out.signed_number(s.extra_ready_);
  out.number(s.unnamed_owner_);
  out.number(s.changes_);
  out.number(s.earlier_changes_);
  out.number(s.statements_.size());
  s.statements_.for_each([&out](const StatementPtr& statement) { out.statement(statement); });
  out.number(s.replies_.size());
  for (std::size_t i = 0; i < s.replies_.size(); ++i) {
    const Expected& e = s.replies_.at(i);
    out.number(static_cast<std::uint64_t>(e.request));
    for (bool flag : {e.for_client, e.name_is_taken, e.forgets_names, e.sets_unnamed, e.takes_unnamed}) out.flag(flag);
    out.number(e.sets_unnamed ? e.unnamed_before : 0);
    out.flag(e.undo != nullptr);
    if (e.undo == nullptr) continue;
    out.text(e.undo->client_name);
    out.statement(e.undo->statement);
    for (bool flag : {e.undo->client_added, e.undo->client_removed, e.undo->server_added, e.undo->server_removed})
      out.flag(flag);
  }
  return out.take();
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

// ------------------------------------------------------------------ the new process

std::uint64_t Handover::new_id(std::uint64_t old_id) const {
  if (old_id == 0) return 0;
  auto it = clients_.find(old_id);
  return it != clients_.end() ? it->second->id : kNobody;
}

Pool* Handover::restore_pool(StateReader& in, std::string& why) {
  std::string database_name = in.text(), user_name = in.text(), origin = in.text();
  auto user_keys = in.keys();
  std::string user_secret = in.text(), looked_up = in.text();
  auto looked_up_keys = in.keys();
  std::shared_ptr<Welcome> welcome;
  if (in.flag()) {
    welcome = std::make_shared<Welcome>();
    welcome->untracked = in.bytes();
    welcome->tracked = in.parameters(pooler_.tracked);
  }
  if (!in.ok()) {
    why = "broken state of a pool";
    return nullptr;
  }
  std::lock_guard guard(pooler_.lock);
  Database* database = pooler_.find_database(database_name);
  if (database == nullptr || database->is_console) {
    why = "no such database: " + database_name;
    return nullptr;
  }
  Pool& pool = pooler_.pool(*database, user_name);
  if (!pool.user.scram_keys) {
    pool.user.scram_keys = user_keys;
    pool.user.scram_keys_secret = user_secret;
  }
  if (pool.looked_up_secret.empty()) {
    pool.looked_up_secret = looked_up;
    pool.looked_up_keys = looked_up_keys;
  }
  // What the old entry led to may be another server than the new one's.
  bool is_same_origin = origin == origin_of(*database->config);
  if (is_same_origin && !pool.welcome) pool.welcome = std::move(welcome);
  why = is_same_origin ? "" : "obsolete";
  return &pool;
}

Result<Done> Handover::restore_client(int fd, Bytes state) {
  StateReader in(state);
  if (in.text() != kFormat || in.text() != "client") {
    ::close(fd);
    return fatal("the old process is of another kind or version");
  }
  std::uint64_t old_id = in.number();
  auto as = static_cast<ClientState>(in.number());
  std::vector<std::byte> input = in.bytes();
  SocketAddress peer;
  socklen_t size = sizeof peer.storage;
  if (getpeername(fd, peer.data(), &size) == 0) peer.length = size;
  if (peer.empty() || peer.length < sizeof(sa_family_t)) {
    peer.storage.ss_family = AF_UNIX;
    peer.length = sizeof(sa_family_t);
  }
  auto* c = new ClientSession(pooler_, choose_worker_(), fd, peer);
  auto failed = [c](std::string why) {
    c->close_silently("cannot be taken over: " + why);
    return fatal(std::move(why));
  };
  c->input_.put(std::move(input));
  c->connect_time = in.signed_number();
  c->request_time = in.signed_number();
  c->born = in.signed_number();
  c->last_packet = in.signed_number();
  if (as == ClientState::Startup) {
    if (!in.finished()) return failed("broken state of a client");
    c->login_ = std::make_unique<ClientLogin>(*c);
    return Done{};
  }
  c->nothing_received_ = false;
  std::string why;
  Pool* pool = restore_pool(in, why);
  if (pool == nullptr) return failed(why);
  std::string user_name = in.text();
  {
    std::lock_guard guard(pooler_.lock);
    c->pool_ = pool;
    c->database_ = &pool->database;
    c->user_ = &pooler_.user(user_name);
    c->user_->is_known = true;
    c->is_counted_ = true;
    ++pool->client_count;
    ++c->database_->client_count;
    ++c->user_->client_count;
    pool->unused_since = 0;
  }
  c->parameters_ = in.parameters(pooler_.tracked);
  std::vector<std::byte> key = in.bytes();
  if (key.size() == c->cancel_key_.size()) std::copy(key.begin(), key.end(), c->cancel_key_.begin());
  c->marks_.position = in.number();
  c->marks_.start = in.number();
  c->body_left_ = static_cast<std::size_t>(in.number());
  c->body_is_dropped_ = in.flag();
  c->is_stalled_ = in.flag();
  c->left_politely_ = in.flag();
  c->left_at_ = in.signed_number();
  c->wait_started = in.signed_number();
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    std::string name = in.text();
    if (auto statement = in.statement()) c->statements_.set(name, std::move(statement));
  }
  if (in.flag()) {
    c->replication_ = std::make_unique<ReplicationWish>();
    c->replication_->mode = static_cast<ReplicationMode>(in.number());
    c->replication_->options = in.text();
  }
  if (!in.finished() || as > ClientState::Leaving) return failed("broken state of a client");
  clients_[old_id] = c;
  c->enter(as);
  std::lock_guard guard(pooler_.lock);
  if (as == ClientState::Waiting) pool->waiters.push_back(c);
  if (as == ClientState::Welcome) (c->replication_ ? pool->replicants : pool->newcomers).push_back(c);
  return Done{};
}

void Handover::restore_replies(ServerConnection& s, StateReader& in) {
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    auto request = static_cast<Request>(in.number());
    bool for_client = in.flag();
    s.replies_.push(request, for_client);
    Expected& e = s.replies_.back();
    for (bool* flag : {&e.name_is_taken, &e.forgets_names, &e.sets_unnamed, &e.takes_unnamed}) *flag = in.flag();
    e.unnamed_before = new_id(in.number());
    if (!in.flag()) continue;
    e.undo = std::make_unique<StatementUndo>();
    e.undo->client_name = in.text();
    e.undo->statement = in.statement();
    for (bool* flag : {&e.undo->client_added, &e.undo->client_removed, &e.undo->server_added, &e.undo->server_removed})
      *flag = in.flag();
  }
}

Result<Done> Handover::restore_server(int fd, Bytes state) {
  StateReader in(state);
  std::string why;
  Pool* pool = nullptr;
  if (in.text() != kFormat || in.text() != "server")
    why = "the old process is of another kind or version";
  else
    pool = restore_pool(in, why);
  std::uint64_t client_id = in.number();
  auto client = clients_.find(client_id);
  if (pool != nullptr && client_id != 0 && client == clients_.end()) {
    pool = nullptr;
    why = "its client was not taken over";
  }
  if (pool == nullptr) {
    ::close(fd);
    return fatal(why);
  }
  ClientSession* c = client_id != 0 ? client->second : nullptr;
  {
    std::lock_guard guard(pooler_.lock);
    ++pool->server_count;
    ++pool->database.server_count;
    ++pool->user.server_count;
  }
  Worker& worker = c != nullptr ? c->worker : pooler_.main_worker();
  auto* s = new ServerConnection(pooler_, *pool, worker);
  s->login_step_ = ServerConnection::LoginStep::Messages;
  s->host_ = in.text();
  std::vector<std::byte> address = in.bytes();
  s->address_ =
      socket_address(reinterpret_cast<const sockaddr*>(address.data()), static_cast<socklen_t>(address.size()));
  if (in.flag() || why == "obsolete") s->make_obsolete();
  s->cancel_key_ = in.bytes();
  s->backend_pid_ = static_cast<std::uint32_t>(in.number());
  s->parameters_ = in.parameters(pooler_.tracked);
  s->defaults_ = in.parameters(pooler_.tracked);
  for (std::int64_t* time : {&s->connect_time, &s->request_time, &s->born, &s->idle_since, &s->query_started,
                             &s->xact_started, &s->last_answer})
    *time = in.signed_number();
  s->input_.put(in.bytes());
  s->body_left_ = static_cast<std::size_t>(in.number());
  s->status_ = static_cast<char>(in.number());
  for (bool* flag : {&s->body_to_client_, &s->is_busy_, &s->skips_until_sync_, &s->copy_in_, &s->copies_both_ways_,
                     &s->is_dedicated_, &s->leaves_state_, &s->front_has_answer_, &s->unnamed_is_of_batch_,
                     &s->has_served_, &s->has_served_clients_})
    *flag = in.flag();
  s->extra_ready_ = static_cast<int>(in.signed_number());
  s->unnamed_owner_ = new_id(in.number());
  s->changes_ = static_cast<std::size_t>(in.number());
  s->earlier_changes_ = static_cast<std::size_t>(in.number());
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count)
    if (auto statement = in.statement()) s->statements_.add(std::move(statement));
  restore_replies(*s, in);
  s->stream_.open(worker.loop, fd, s->address_.is_unix());
  s->set_state(ServerEvent::LoggedIn);
  if (!in.finished()) {
    s->close("cannot be taken over: broken state of a server");
    return fatal("broken state of a server");
  }
  if (c == nullptr) {
    std::lock_guard guard(pooler_.lock);
    pool->idle.push_back(s);
    return Done{};
  }
  s->set_state(ServerEvent::Linked);
  s->client_ = c;
  c->leg_.server = s;
  return Done{};
}

void Handover::finish() {
  std::vector<ClientSession*> orphans;
  for (auto& [old_id, c] : clients_) {
    bool needs_server = c->state_ == ClientState::Active || c->state_ == ClientState::Leaving;
    if (needs_server && !c->is_linked()) orphans.push_back(c);
  }
  for (ClientSession* c : orphans) {
    c->enter(ClientState::Idle);  // the state of a client that may be closed without a leg
    c->close(fatal("server conn crashed?", "its server connection was not taken over"));
  }
  pooler_.for_each_client([](ClientSession& c) {
    c.stream_.assume_readable();
    c.worker.loop.resume_later(c);
  });
  pooler_.for_each_server([](ServerConnection& s) {
    s.stream_.assume_readable();
    s.worker().loop.resume_later(s);
  });
  for (auto& worker : pooler_.workers) {
    worker->tick_soon();
    worker->loop.post([] {});  // so that the first turn comes at once
  }
  pooler_.for_each_pool([this](Pool& pool) { pooler_.kick(pool); });
}

}  // namespace lokadb
