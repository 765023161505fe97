// Descriptors that go from one process to another over a unix socket (SCM_RIGHTS). Both calls may block, for seconds.
#pragma once

#include <vector>

#include "base/bytes.h"

namespace lokadb {

// Sends all of the bytes; the descriptor goes with the first of them. The socket may be non-blocking. False: it broke,
// or took nothing for too long.
bool send_with_descriptor(int socket, Bytes bytes, int fd);

// Like recv(); what descriptors come along is appended to `fds`, close-on-exec.
long receive_with_descriptors(int socket, std::byte* out, std::size_t size, std::vector<int>& fds);

}  // namespace lokadb
