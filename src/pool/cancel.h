// A CancelRequest on its way to the server that works for its client (PostgreSQL manual, "Canceling Requests in
// Progress"). It reaches that query or nothing: while it is under way the server is not given to anybody else.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "net/stream.h"
#include "pool/cancel_key.h"
#include "pool/client_session.h"
#include "pool/database.h"

namespace lokadb {

class Pooler;
class ServerConnection;
class Worker;
struct OwnedTag;

class CancelJob final : public StreamOwner, public Buriable, public ListHook<OwnedTag> {
 public:
  // What a client asked for, and its connection, which stays open until the request has been dealt with.
  struct Request;

  // Takes over the connection that brought the request, which ends the session; it is closed when the job is done.
  static void start(ClientSession& requester, const CancelKey& key);
  // Cancels what the client's server does for it, if anything; the client's worker.
  static void cancel(ClientSession& client);
  // The server has been closed: jobs for it have nothing left to do.
  static void server_gone(ServerConnection& server);
  // Those that wait for a slot try again, or give up after cancel_wait_timeout. Worker's thread.
  static void tick(Worker& worker, std::int64_t now);
  // The proxy ends: whoever asked is not kept waiting for an answer. The loop has ended.
  static void finish_all(Worker& worker);

  bool is_waiting() const { return is_waiting_; }
  Pool& pool() { return pool_; }

  void on_stream_event() override;
  void on_send_failed() override { finish("cancel connection failed"); }
  void resume() override {}

 private:
  static void search(Pooler& pooler, const std::shared_ptr<Request>& request, std::size_t workers_left,
                     std::size_t index);
  static void found(ClientSession& client, const std::shared_ptr<Request>& request);

  CancelJob(Pooler& pooler, Worker& worker, ServerConnection& server, ClientSession& client,
            std::shared_ptr<Request> request);
  static void start_waiting(Worker& worker);
  bool try_start();
  bool is_still_wanted() const;
  void finish(const char* outcome);

  Pooler& pooler_;
  Worker& worker_;
  Pool& pool_;
  ServerConnection* server_;
  std::uint64_t client_id_;
  std::shared_ptr<Request> request_;
  Stream stream_;
  std::int64_t born_;
  bool is_waiting_ = true;
  bool is_sent_ = false;
};

}  // namespace lokadb
