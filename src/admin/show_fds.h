// SHOW FDS: every socket with what it is for. To a successor (-R) the sockets themselves are given with it.
#pragma once

#include <string>
#include <vector>

#include "admin/result_table.h"
#include "net/listener.h"

namespace lokadb {

class ClientSession;
class Pooler;

inline constexpr std::string_view kFdsColumns =
    "fd i, task t, user t, database t, addr t, port i, cancel q, link i, client_encoding t, std_strings t, "
    "datestyle t, timezone t, password t, scram_client_key b, scram_server_key b";

// The answer's rows. World stopped.
void show_fds(Pooler& pooler, const std::vector<ListeningSocket>& listening, ResultTable& table);

// Sends description and rows to `successor`, a console session on a unix socket, each row with its descriptor and, in
// one more column, the state of the connection; may block for seconds. False: it did not take them all. World stopped,
// and everything suspended.
bool hand_over_fds(Pooler& pooler, const std::vector<ListeningSocket>& listening, ClientSession& successor);

}  // namespace lokadb
