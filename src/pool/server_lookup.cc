// auth_query, seen from the server connection that is asked.
#include "auth/user_lookup.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxAnswer = 1 << 20;
}

void ServerConnection::look_up_user() {
  UserLookup& lookup = client_->lookup();
  if (has_served_clients_) {
    // What they left (a search_path, a temporary table) must not be what the query reads.
    has_served_clients_ = false;
    agrees_with_ = nullptr;
    return start_step(Step::DiscardAll, "DISCARD ALL");
  }
  step_ = Step::UserLookup;
  step_failed_ = false;
  ByteBuffer out;
  lookup.write_request(out);
  set_unnamed_owner(client_->id, expect(Request::Parse, false));
  for (Request request : {Request::Bind, Request::Describe, Request::Execute, Request::Sync}) expect(request, false);
  stream_.send_copy(out.bytes());
}

// The answer to DISCARD ALL or to the connect_query, whose settings went with it, is there.
void ServerConnection::lookup_step_finished(Step step) {
  if (step == Step::DiscardAll && (step_failed_ || status_ != 'I')) return close("reset query failed");
  if (step == Step::DiscardAll && has_connect_query())
    return start_step(Step::RepeatConnectQuery, *pool.database.config->connect_query);
  if (status_ != 'I') return close("connect query left a transaction open");
  look_up_user();
}

bool ServerConnection::handle_lookup_answer(char type, Bytes in, std::size_t total, std::size_t& used) {
  if (total > kMaxAnswer) {
    close("unexpected response from auth_query");
    return false;
  }
  if (in.size() < total) return false;
  used = total;
  if (auto read = client_->lookup().on_answer(type, in.subspan(kHeaderSize, total - kHeaderSize)); !read) {
    close(read.error().log_text());
    return false;
  }
  return true;
}

}  // namespace lokadb
