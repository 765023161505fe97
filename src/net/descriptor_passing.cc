#include "net/descriptor_passing.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace lokadb {

namespace {
constexpr int kPatience = 10'000;        // milliseconds
constexpr std::size_t kMostAtOnce = 64;  // descriptors in one message
}  // namespace

bool send_with_descriptor(int socket, Bytes bytes, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  bool is_first = true;
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (is_first) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n > 0) {
      is_first = false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    pollfd wait{socket, POLLOUT, 0};
    if (poll(&wait, 1, kPatience) <= 0) return false;
  }
  return true;
}

long receive_with_descriptors(int socket, std::byte* out, std::size_t size, std::vector<int>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostAtOnce)];
  iovec part{out, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return n;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      fds.push_back(fd);
    }
  }
  return n;
}

}  // namespace lokadb
