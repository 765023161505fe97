// Replication connections (PostgreSQL manual, "Streaming Replication Protocol"): each gets a server connection opened
// for it alone, which ends with it. Nothing here is pooled but the count of connections.
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

// ------------------------------------------------------------------ the client

void ClientLogin::open_replication() {
  Pooler& pooler = session_.pooler;
  ClientSession& session = session_;
  session.parameters_ = session.startup_parameters_ = intern_parameters(std::move(wanted_));
  session.replication_ = std::make_unique<ReplicationWish>(ReplicationWish{replication_, raw_options_});
  session.wait_started = session.worker.loop.now();
  if (!session.set_state(ClientEvent::MustWait)) return refuse(fatal("illegal state"));
  {
    std::lock_guard guard(pooler.lock);
    const auto& forced = session.database_->config->user;
    Pool& pool = pooler.pool(*session.database_, forced ? *forced : user_);
    session.pool_ = &pool;
    if (was_looked_up_ && !forced) remember_lookup(pool);
    ++pool.client_count;
    pool.unused_since = 0;
    pool.replicants.push_back(&session);
  }
  pooler.launch_if_wanted(*session.pool_, session.worker);
  session.drop_login();
}

// What the server said at its login is what the client is told; the key alone is ours.
void ClientLogin::send_replication_welcome(ClientSession& session, ServerConnection& server) {
  ByteBuffer out;
  {
    MessageWriter m(out, 'R');
    m->u32(0);
  }
  server.write_reported(out);
  write_cancel_key(session, out);
  write_ready_for_query(out, 'I');
  session.stream_.send_copy(out.bytes());
  session.counters().client_login_count.add(1);
}

void ClientSession::dedicated_ready() {
  ServerConnection& server = *leg_.server;
  wait_started = 0;
  parameters_ = server.parameters();
  if (!set_state(ClientEvent::Welcomed) || !set_state(ClientEvent::ServerGiven)) return close(fatal("illegal state"));
  ClientLogin::send_replication_welcome(*this, server);
  worker.loop.resume_later(*this);
}

// ------------------------------------------------------------------ the pool

// [lock] held. The one to be served next, if none of those who share has waited for longer.
ClientSession* Pooler::next_replicant(Pool& pool) const {
  ClientSession* first = pool.replicants.front();
  ClientSession* other = pool.waiters.front();
  if (first == nullptr || other == nullptr || pool.server_count == 0) return first;
  return first->wait_started <= other->wait_started ? first : nullptr;
}

// A place is reserved, and the client (in_flight) gets a connection made on its own worker.
void Pooler::open_dedicated(Pool& pool, ClientSession& client, bool is_here) {
  auto open = [this, &pool, &client, worker = &client.worker] {
    if (client.arrived() && client.state() == ClientState::Welcome)
      return (new ServerConnection(*this, pool, *worker))->start_login_for(client);
    {
      std::lock_guard guard(lock);
      --pool.server_count;
      --pool.database.server_count;
      --pool.user.server_count;
      pool.login_running = false;
    }
    launch_if_wanted(pool, *worker);
  };
  is_here ? open() : client.worker.loop.post(open);
}

void Pooler::dedicated_login_done(ServerConnection& server) {
  Pool& pool = server.pool;
  ClientSession& client = *server.client();
  {
    std::lock_guard guard(lock);
    pool.login_running = server.is_logging_in = false;
    server.set_state(ServerEvent::LoggedIn);
  }
  server.link(client);
  client.dedicated_ready();
  launch_if_wanted(pool, client.worker);
}

}  // namespace lokadb
