#include "pool/cancel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "pool/cancel_key.h"
#include "pool/cancel_request.h"
#include "pool/peer_forward.h"
#include "pool/pooler.h"
#include "pool/routing.h"
#include "pool/server_connection.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
// Whose statement the client waits for: of a direct read that is the organization's server, and then the gate's.
ServerConnection* working_server(ClientSession& client) {
  ServerConnection* own = client.leg().server;
  if (client.routing() == nullptr || (own != nullptr && own->has_outstanding())) return own;
  ServerConnection* gate = client.routing()->gate_server();
  return gate != nullptr ? gate : own;
}
}  // namespace

void CancelJob::start(ClientSession& requester, const CancelKey& key) {
  Pooler& pooler = requester.pooler;
  auto request = std::make_shared<Request>();
  request->key = key;
  request->log_name = requester.log_name();
  request->logs = pooler.options().log_disconnections;
  request->fd = requester.stream().release();
  auto index = static_cast<std::size_t>(requester.worker.index);
  requester.close_silently({});
  search(pooler, request, pooler.workers.size(), index);
}

void CancelJob::cancel(ClientSession& client) {
  auto request = std::make_shared<Request>();
  request->log_name = client.log_name();
  request->logs = client.pooler.options().log_disconnections;
  found(client, request);
}

// Asks one worker after the other; the first is the one we are on.
void CancelJob::search(Pooler& pooler, const std::shared_ptr<Request>& request, std::size_t left, std::size_t index) {
  ClientSession* client = nullptr;
  bool has_peers = pooler.options().peer_id > 0;
  pooler.workers[index]->clients.for_each([&](ClientSession* c) {
    bool is_logged_in = c->state() >= ClientState::Idle && c->state() < ClientState::Closed;
    if (is_logged_in && is_same_key(c->cancel_key(), request->key, has_peers)) client = c;
  });
  if (client != nullptr) return found(*client, request);
  if (left <= 1) {
    int own = pooler.options().peer_id;
    if (has_peers && peer_of(request->key) != own) return PeerForward::start(*pooler.workers[index], request);
    return request->log_end("failed cancel request");
  }
  std::size_t next = (index + 1) % pooler.workers.size();
  pooler.workers[next]->loop.post([&pooler, request, left, next] { search(pooler, request, left - 1, next); });
}

void CancelJob::found(ClientSession& client, const std::shared_ptr<Request>& request) {
  Pooler& pooler = client.pooler;
  const char* refusal = nullptr;
  ServerConnection* server = working_server(client);
  if (client.state() == ClientState::Console) {
    std::uint64_t console_id = client.id;
    pooler.run_alone_later([&pooler, console_id] { pooler.console->abandoned(console_id); });
    refusal = "cancel request for console client";
  } else if (server == nullptr) {
    refusal = "cancel request for idle client";
  } else if (server->is_setting_parameters()) {
    refusal = "ignoring cancel request for server that is setting vars";
  } else if (!server->has_outstanding()) {
    refusal = "cancel request for idle client";
  } else if (client.routing() != nullptr && client.routing()->has_sent_commit()) {
    refusal = "ignoring cancel request for client whose COMMIT is under way";
  }
  if (refusal != nullptr) return request->log_end(refusal);
  auto* job = new CancelJob(pooler, client.worker, *server, client, request);
  job->try_start();
}

CancelJob::CancelJob(Pooler& pooler, Worker& worker, ServerConnection& server, ClientSession& client,
                     std::shared_ptr<Request> request)
    : pooler_(pooler),
      worker_(worker),
      pool_(server.pool),
      server_(&server),
      client_id_(client.id),
      request_(std::move(request)),
      stream_(*this),
      born_(worker.loop.now()) {
  worker.cancels.push_back(this);
}

bool CancelJob::is_still_wanted() const {
  return server_ != nullptr && server_->client() != nullptr && server_->client()->id == client_id_ &&
         server_->has_outstanding();
}

// False: no slot is free yet. The object may be gone afterwards.
bool CancelJob::try_start() {
  if (!is_still_wanted()) {
    finish("not sending cancel request for client that is now idle");
    return true;
  }
  {
    std::lock_guard guard(pooler_.lock);
    int size = pool_.settings.size;
    if (size > 0 && pool_.server_count + pool_.cancel_count >= 2 * size) return false;
    ++pool_.cancel_count;
  }
  is_waiting_ = false;
  server_->cancel_started();
  const SocketAddress& address = server_->address();
  int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    finish("cancel connection failed");
    return true;
  }
  if (!address.is_unix()) tune_tcp_socket(fd, pooler_.tcp_tuning());
  if (connect(fd, address.data(), address.length) < 0 && errno != EINPROGRESS) {
    ::close(fd);
    finish("cancel connection failed");
    return true;
  }
  stream_.open(worker_.loop, fd, address.is_unix());
  return true;
}

void CancelJob::on_stream_event() {
  if (!stream_.is_open()) return;
  if (!is_sent_) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(stream_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return finish("cancel connection failed");
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    if (getpeername(stream_.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return;
    // Last look: what comes after the query has ended would meet the client's next one.
    if (!is_still_wanted() || server_->cancel_key().size() < 8)
      return finish("not sending cancel request for client that is now idle");
    ByteBuffer out;
    out.u32(static_cast<std::uint32_t>(8 + server_->cancel_key().size()));
    out.u32(kCancelRequest);
    out.append(server_->cancel_key());
    is_sent_ = true;
    stream_.send_copy(out.bytes());
    return;
  }
  std::byte waste[64];
  while (true) {
    ReadResult r = stream_.read(waste);
    if (r.status == ReadStatus::Empty) return;
    if (r.status != ReadStatus::Data) return finish("successfully sent cancel request");
  }
}

void CancelJob::finish(const char* outcome) {
  if (request_ == nullptr) return;
  request_->log_end(outcome);
  request_.reset();
  stream_.close();
  worker_.cancels.remove(this);
  worker_.loop.bury(std::unique_ptr<Buriable>(this));
  if (is_waiting_) return;
  {
    std::lock_guard guard(pooler_.lock);
    --pool_.cancel_count;
  }
  if (server_ != nullptr) server_->cancel_ended();
  // Later, because we may be inside a walk over the list.
  worker_.loop.post([worker = &worker_] { start_waiting(*worker); });
}

// Each start may end jobs, so the walk begins anew after one.
void CancelJob::start_waiting(Worker& worker) {
  bool again = true;
  while (again) {
    again = false;
    for (CancelJob* job = worker.cancels.front(); job != nullptr && !again; job = worker.cancels.next(job))
      again = job->is_waiting_ && job->try_start();
  }
}

void CancelJob::server_gone(ServerConnection& server) {
  server.worker().cancels.for_each([&server](CancelJob* job) {
    if (job->server_ == &server) job->server_ = nullptr;
  });
}

void CancelJob::tick(Worker& worker, std::int64_t now) {
  std::int64_t limit = worker.pooler.options().cancel_wait_timeout.count();
  for (CancelJob* job = worker.cancels.front(); job != nullptr;) {
    CancelJob* next = worker.cancels.next(job);
    if (limit > 0 && now - job->born_ > limit) job->finish("cancel_wait_timeout");
    job = next;
  }
  start_waiting(worker);
}

void CancelJob::finish_all(Worker& worker) {
  while (CancelJob* job = worker.cancels.front()) job->finish("the proxy is shutting down");
}

}  // namespace lokadb
