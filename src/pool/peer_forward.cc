#include "pool/peer_forward.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "pool/cancel_request.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

void PeerForward::start(Worker& worker, std::shared_ptr<CancelJob::Request> request) {
  int id = peer_of(request->key);
  const auto& peers = worker.pooler.config->peers;
  if (!peers.contains(id)) return request->log_end("could not find peer to forward request to");
  if (hops_left(request->key) == 0)
    return request->log_end("failed to forward cancel request because its TTL was exhausted");
  auto* made = new PeerForward(worker, id, std::move(request));
  worker.tick_soon();
  made->try_start();
}

PeerForward::PeerForward(Worker& worker, int peer_id, std::shared_ptr<CancelJob::Request> request)
    : worker_(worker), peer_id_(peer_id), request_(std::move(request)), stream_(*this), born_(worker.loop.now()) {
  worker.forwards.push_back(this);
}

// False: no place is free yet. The object may be over afterwards.
bool PeerForward::try_start() {
  Pooler& pooler = worker_.pooler;
  const PeerConfig& peer = pooler.config->peers.at(peer_id_);
  {
    std::lock_guard guard(pooler.lock);
    int most = peer.pool_size.value_or(pooler.options().default_pool_size);
    int& under_way = pooler.peer_connections[peer_id_];
    if (most > 0 && under_way >= most) return false;
    ++under_way;
  }
  stage_ = Stage::Connecting;
  if (peer.host.front() == '/' || peer.host.front() == '@') {
    auto address = unix_address(peer.host + "/.s.PGSQL." + std::to_string(peer.port));
    address ? connect_to(*address) : finish("connection to peer failed");
    return true;
  }
  dns_ = worker_.resolver->resolve(peer.host, peer.port, [this](const DnsAnswer& answer) {
    answer ? connect_to(answer.addresses.front()) : finish("DNS lookup of peer failed");
  });
  return true;
}

void PeerForward::connect_to(const SocketAddress& address) {
  int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return finish("connection to peer failed");
  if (!address.is_unix()) tune_tcp_socket(fd, worker_.pooler.tcp_tuning());
  if (connect(fd, address.data(), address.length) < 0 && errno != EINPROGRESS) {
    ::close(fd);
    return finish("connection to peer failed");
  }
  stream_.open(worker_.loop, fd, address.is_unix());
  on_stream_event();
}

void PeerForward::on_stream_event() {
  if (!stream_.is_open()) return;
  if (stage_ == Stage::Connecting) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(stream_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return finish("connection to peer failed");
    sockaddr_storage there;
    socklen_t there_size = sizeof there;
    if (getpeername(stream_.fd(), reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return;
    CancelKey key = one_hop_less(request_->key);
    ByteBuffer out;
    out.u32(static_cast<std::uint32_t>(8 + key.size()));
    out.u32(kCancelRequest);
    out.append(key.bytes());
    stage_ = Stage::Sent;
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

void PeerForward::finish(const char* outcome) {
  if (request_ == nullptr) return;
  request_->log_end(outcome);
  request_.reset();
  dns_.cancel();
  stream_.close();
  worker_.forwards.remove(this);
  worker_.loop.bury(std::unique_ptr<Buriable>(this));
  if (stage_ == Stage::Waiting) return;
  {
    std::lock_guard guard(worker_.pooler.lock);
    --worker_.pooler.peer_connections[peer_id_];
  }
  // Later, because we may be inside a walk over the list.
  worker_.loop.post([worker = &worker_] { start_waiting(*worker); });
}

// Each start may end jobs, so the walk begins anew after one.
void PeerForward::start_waiting(Worker& worker) {
  bool again = true;
  while (again) {
    again = false;
    for (PeerForward* f = worker.forwards.front(); f != nullptr && !again; f = worker.forwards.next(f))
      again = f->stage_ == Stage::Waiting && f->try_start();
  }
}

void PeerForward::tick(Worker& worker, std::int64_t now) {
  std::int64_t limit = worker.pooler.options().cancel_wait_timeout.count();
  for (PeerForward* f = worker.forwards.front(); f != nullptr;) {
    PeerForward* next = worker.forwards.next(f);
    if (limit > 0 && now - f->born_ > limit) f->finish("cancel_wait_timeout");
    f = next;
  }
  start_waiting(worker);
}

void PeerForward::drop_removed(Worker& worker) {
  const auto& peers = worker.pooler.config->peers;
  worker.forwards.for_each([&peers](PeerForward* f) {
    if (!peers.contains(f->peer_id_)) f->finish("peer removed");
  });
}

void PeerForward::finish_all(Worker& worker) {
  while (PeerForward* f = worker.forwards.front()) f->finish("the proxy is shutting down");
}

}  // namespace lokadb
