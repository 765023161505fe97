// Connections that go from a process to its successor (-R): what is written down of each, and how the successor makes
// them again. Both ends are builds of this program; the format says which, and another one is refused.
// Sources: handover.cc (the old process), handover_restore.cc (the new one), handover_state.cc (the format).
//
// A client or server is moved in the middle of whatever it is doing, between two reads: with what it has read and not
// handled yet, and with all that is owed. What cannot be moved (TLS, a login or a check under way, a cancel on its way
// to the server, a batch that plugins have a say in) stays with the old process and ends with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "pool/handover_state.h"
#include "pool/pooler.h"
#include "pool/prepared.h"

namespace lokadb {

class StateReader;
class StateWriter;
struct UnnamedStatement;

class Handover {
 public:
  // --- the old process; world stopped
  static bool may_move(ClientSession& client);
  static bool may_move(ServerConnection& server);
  static std::string state_of(ClientSession& client);
  static std::string state_of(ServerConnection& server);
  // What was moved is another process's now: descriptors are closed, and nothing is said to anybody.
  static void let_go(Pooler& pooler);

  // --- the new process, before its loops run: clients, then servers, then finish()
  Handover(Pooler& pooler, std::function<Worker&()> choose_worker)
      : pooler_(pooler), choose_worker_(std::move(choose_worker)) {}
  // These take over the descriptor, and close it where they fail; the error says why.
  Result<Done> restore_client(int fd, Bytes state);
  Result<Done> restore_server(int fd, Bytes state);
  void finish();

 private:
  static bool is_movable(ClientSession& client);
  static bool is_movable(ServerConnection& server);
  static void write_requests(StateWriter& out, ClientSession& client);
  static void write_replies(StateWriter& out, ServerConnection& server);
  static bool restore_requests(ClientSession& client, StateReader& in, UnnamedStatement& unnamed,
                               TextPairs& of_plugins);
  Pool* restore_pool(StateReader& in, std::string& why);
  void restore_replies(ServerConnection& server, StateReader& in);
  std::uint64_t new_id(std::uint64_t old_id) const;
  void restore_unnamed_owner(ServerConnection& server, std::uint64_t old_id, std::uint64_t old_owner) const;

  Pooler& pooler_;
  std::function<Worker&()> choose_worker_;
  std::map<std::uint64_t, ClientSession*> clients_;        // by their ids in the old process
  std::map<std::uint64_t, std::uint64_t> newest_unnamed_;  // the server that has it, both by their old ids
  std::map<std::uint64_t, StatementPtr> statements_;       // by their numbers, which servers know
};

}  // namespace lokadb
