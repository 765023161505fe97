// A cancel request for a client of another process that shares our port ([peers]): passed on to that one, on a
// connection made for it. At most pool_size of them are on their way to one peer, the others wait.
#pragma once

#include <cstdint>
#include <memory>

#include "net/address.h"
#include "net/dns.h"
#include "net/stream.h"
#include "pool/cancel.h"

namespace lokadb {

class PeerForward final : public StreamOwner, public Buriable, public ListHook<OwnedTag> {
 public:
  enum class Stage : std::uint8_t {
    Waiting,     // for a place
    Connecting,  // has one (name look-up included)
    Sent,        // until the peer closes: then it has done what there was to do
  };

  // The request's key is none of ours. Ends it at once if there is no such peer, or it has come too far already.
  static void start(Worker& worker, std::shared_ptr<CancelJob::Request> request);
  // Those that wait try again, or give up after cancel_wait_timeout. Worker's thread.
  static void tick(Worker& worker, std::int64_t now);
  // The configuration has changed: those for peers that are no more end. World stopped.
  static void drop_removed(Worker& worker);
  // The proxy ends. The loop has ended.
  static void finish_all(Worker& worker);

  int peer_id() const { return peer_id_; }
  Stage stage() const { return stage_; }

  void on_stream_event() override;
  void on_send_failed() override { finish("connection to peer failed"); }
  void resume() override {}

 private:
  PeerForward(Worker& worker, int peer_id, std::shared_ptr<CancelJob::Request> request);
  bool try_start();
  static void start_waiting(Worker& worker);
  void connect_to(const SocketAddress& address);
  void finish(const char* outcome);

  Worker& worker_;
  const int peer_id_;
  std::shared_ptr<CancelJob::Request> request_;  // null: over
  Stage stage_ = Stage::Waiting;
  Stream stream_;
  DnsTicket dns_;
  std::int64_t born_;
};

}  // namespace lokadb
