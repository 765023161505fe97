// Online restart in the new process: connections are made again from what is written down of them.
#include <unistd.h>

#include <algorithm>

#include "pool/client_login.h"
#include "pool/client_session.h"
#include "pool/handover.h"
#include "pool/handover_state.h"
#include "pool/routing.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::uint64_t kNobody = ~std::uint64_t{0};  // an id that no client will have
}  // namespace

std::uint64_t Handover::new_id(std::uint64_t old_id) const {
  if (old_id == 0) return 0;
  auto it = clients_.find(old_id);
  return it != clients_.end() ? it->second->id : kNobody;
}

void Handover::restore_unnamed_owner(ServerConnection& server, std::uint64_t old_id, std::uint64_t old_owner) const {
  server.unnamed_owner_ = new_id(old_owner);
  auto newest = newest_unnamed_.find(old_owner);
  if (newest != newest_unnamed_.end() && newest->second == old_id) clients_.at(old_owner)->unnamed_server = server.id;
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
    welcome->tracked = in.parameters();
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
  StateReader in(state, pooler_.tracked, statements_);
  if (in.text() != kHandoverFormat || in.text() != "client") {
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
  c->parameters_ = in.parameters();
  c->startup_parameters_ = in.parameters();
  c->cancel_key_ = CancelKey::from(in.bytes()).value_or(CancelKey());
  c->takes_long_keys_ = in.flag();
  if (as != ClientState::Welcome && in.ok()) {
    std::lock_guard guard(pooler_.lock);
    pooler_.numbers.emplace(c->number(), c);
  }
  UnnamedStatement unnamed;
  TextPairs of_plugins;
  bool is_amid_batch = restore_requests(*c, in, unnamed, of_plugins);
  c->left_politely_ = in.flag();
  c->is_condemned_ = in.flag();
  newest_unnamed_[old_id] = in.number();
  c->left_at_ = in.signed_number();
  c->wait_started = in.signed_number();
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    std::string name = in.text();
    auto statement = in.statement();
    RowsMark rows = in.number();
    if (statement) c->statements_.set(name, std::move(statement), rows);
  }
  if (in.flag()) {
    c->replication_ = std::make_unique<ReplicationWish>();
    c->replication_->mode = static_cast<ReplicationMode>(in.number());
    c->replication_->options = in.text();
  }
  if (!in.finished() || as > ClientState::Leaving) return failed("broken state of a client");
  if (is_amid_batch && pooler_.plugins != nullptr && !c->replication_)
    return failed("plugins have not seen how its batch begins");
  if (as != ClientState::Welcome && !c->replication_) c->begin_routing();
  if (c->routing_) {
    c->routing_->restore_unnamed(std::move(unnamed));
    if (!c->routing_->restore(of_plugins)) return failed("a plugin does not take over its part of a session");
  }
  clients_[old_id] = c;
  c->enter(as);
  std::lock_guard guard(pooler_.lock);
  if (as == ClientState::Waiting) pool->waiters.push_back(c);
  if (as == ClientState::Welcome) (c->replication_ ? pool->replicants : pool->newcomers).push_back(c);
  return Done{};
}

// Whether it is amid a batch that no plugins have seen.
bool Handover::restore_requests(ClientSession& c, StateReader& in, UnnamedStatement& unnamed, TextPairs& of_plugins) {
  c.marks_.position = in.number();
  c.marks_.start = in.number();
  c.body_left_ = static_cast<std::size_t>(in.number());
  for (bool* flag : {&c.body_is_dropped_, &c.streams_text_, &c.streams_unnamed_}) *flag = in.flag();
  std::string tail = in.text();
  c.tail_size_ = std::min(tail.size(), c.tail_.size());
  std::copy_n(tail.data(), c.tail_size_, c.tail_.data());
  bool is_amid_batch = in.flag();
  unnamed.is_known = in.flag();
  if (unnamed.is_known) unnamed.body = in.bytes();
  c.taken_parameters_ = in.pairs();
  of_plugins = in.pairs();
  return is_amid_batch;
}

void Handover::restore_replies(ServerConnection& s, StateReader& in) {
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    auto request = static_cast<Request>(in.number());
    bool for_client = in.flag();
    s.replies_.push(request, for_client);
    Expected& e = s.replies_.back();
    for (bool* flag : {&e.name_is_taken, &e.forgets_names, &e.sets_unnamed, &e.takes_unnamed, &e.rows_have_changed,
                       &e.asks_for_rows})
      *flag = in.flag();
    s.rows_asked_ += e.asks_for_rows;
    e.unnamed_before = new_id(in.number());
    e.statement = in.number();
    if (!in.flag()) continue;
    e.undo = std::make_unique<StatementUndo>();
    e.undo->client_name = in.text();
    e.undo->statement = in.statement();
    for (bool* flag : {&e.undo->client_added, &e.undo->client_removed, &e.undo->server_added, &e.undo->server_removed})
      *flag = in.flag();
  }
}

Result<Done> Handover::restore_server(int fd, Bytes state) {
  StateReader in(state, pooler_.tracked, statements_);
  std::string why;
  Pool* pool = nullptr;
  if (in.text() != kHandoverFormat || in.text() != "server")
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
  s->is_logging_in = false;
  s->host_ = in.text();
  std::vector<std::byte> address = in.bytes();
  s->address_ =
      socket_address(reinterpret_cast<const sockaddr*>(address.data()), static_cast<socklen_t>(address.size()));
  if (in.flag() || why == "obsolete") s->make_obsolete();
  s->cancel_key_ = in.bytes();
  s->backend_pid_ = static_cast<std::uint32_t>(in.number());
  s->parameters_ = in.parameters();
  s->defaults_ = in.parameters();
  s->is_reported_ = in.names();
  for (std::int64_t* time : {&s->connect_time, &s->request_time, &s->born, &s->idle_since, &s->query_started,
                             &s->xact_started, &s->last_answer})
    *time = in.signed_number();
  s->input_.put(in.bytes());
  s->body_left_ = static_cast<std::size_t>(in.number());
  s->status_ = static_cast<char>(in.number());
  for (bool* flag : {&s->body_to_client_, &s->is_busy_, &s->skips_until_sync_, &s->copy_in_, &s->copies_both_ways_,
                     &s->is_dedicated_, &s->front_has_answer_, &s->unnamed_is_of_batch_, &s->has_served_,
                     &s->has_served_clients_, &s->knows_defaults_, &s->is_pinned_, &s->has_changed_tables_})
    *flag = in.flag();
  s->residue_ = static_cast<Residue>(in.number());
  s->unnamed_residue_ = static_cast<Residue>(in.number());
  s->step_ = static_cast<ServerConnection::Step>(in.number());
  s->extra_ready_ = static_cast<int>(in.signed_number());
  std::uint64_t old_id = in.number();
  restore_unnamed_owner(*s, old_id, in.number());
  s->changes_ = static_cast<std::size_t>(in.number());
  s->earlier_changes_ = static_cast<std::size_t>(in.number());
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    auto statement = in.statement();
    RowsMark rows = in.number();
    if (statement) s->statements_.add(std::move(statement), rows);
  }
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
  // Texts that come from now on are statements of their own: nobody knows which of the old ones were up to date.
  begin_statement_epoch();
  statements_.clear();
  std::vector<ClientSession*> orphans;
  for (auto& [old_id, c] : clients_) {
    bool needs_server =
        c->state_ == ClientState::Preparing || c->state_ == ClientState::Active || c->state_ == ClientState::Leaving;
    if (needs_server && !c->is_linked()) orphans.push_back(c);
  }
  for (ClientSession* c : orphans) {
    c->enter(ClientState::Idle);  // the state of a client that may be closed without a leg
    c->close(fatal("server conn crashed?", "its server connection was not taken over"));
  }
  pooler_.for_each_client([](ClientSession& c) {
    c.stream_.assume_readable();
    c.stream_.watch();
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
