#include "net/stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"

namespace lokadb {

namespace {

constexpr std::size_t kMaxSegments = 256;  // of one sendmsg(), which takes 1024
constexpr std::size_t kTlsRecord = 16384;
constexpr std::size_t kMaxJoined = 2048;
constexpr int kDrainReads = 64;

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}
long bio_ctrl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

}  // namespace

// The TLS layer reads from our socket, but only while the kernel may have something (so no failing recv after each
// record), and writes into the backlog, so that all records of a turn leave in one send.
int stream_bio_read(BIO* bio, char* out, int size) {
  auto* stream = static_cast<Stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (!stream->tls_unread_.empty()) {
    auto n = std::min<std::size_t>(stream->tls_unread_.size(), static_cast<std::size_t>(size));
    std::memcpy(out, stream->tls_unread_.data(), n);
    stream->tls_unread_.erase(stream->tls_unread_.begin(), stream->tls_unread_.begin() + static_cast<long>(n));
    return static_cast<int>(n);
  }
  if (stream->readable_) {
    ReadResult r = stream->read_plain(reinterpret_cast<std::byte*>(out), static_cast<std::size_t>(size));
    if (r.status == ReadStatus::Data) return static_cast<int>(r.size);
    if (r.status == ReadStatus::Eof) {  // told by the flag: else TLS takes an end without its goodbye for a failure
      BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
      return 0;
    }
    if (r.status == ReadStatus::Failed) return -1;
  }
  BIO_set_retry_read(bio);
  return -1;
}

int stream_bio_write(BIO* bio, const char* data, int size) {
  auto* stream = static_cast<Stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  auto bytes = as_bytes({data, static_cast<std::size_t>(size)});
  stream->backlog_.insert(stream->backlog_.end(), bytes.begin(), bytes.end());
  stream->loop_->mark_dirty(*stream);
  return size;
}

namespace {
BIO_METHOD* stream_bio() {
  static BIO_METHOD* method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "lokadb stream");
    BIO_meth_set_read(m, stream_bio_read);
    BIO_meth_set_write(m, stream_bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    BIO_meth_set_create(m, bio_create);
    return m;
  }();
  return method;
}
}  // namespace

void Stream::open(EventLoop& loop, int fd, bool is_unix) {
  fd_ = fd;
  is_unix_ = is_unix;
  broken_ = peer_closed_ = false;
  readable_ = false;
  attach(loop);
}

void Stream::open_accepted(EventLoop& loop, int fd, bool is_unix) {
  fd_ = fd;
  is_unix_ = is_unix;
  broken_ = peer_closed_ = write_interest_ = false;
  readable_ = true;
  loop_ = &loop;
}

void Stream::watch() {
  if (!is_watched_ && loop_ != nullptr) add_event(is_blocked());
}

void Stream::attach(EventLoop& loop) {
  loop_ = &loop;
  add_event(!is_unix_ || is_blocked());
}

void Stream::add_event(bool with_write) {
  short what = EV_READ | EV_CLOSED | EV_ET | EV_PERSIST;
  if (with_write) what |= EV_WRITE;
  write_interest_ = with_write;
  event_assign(&event_, loop_->base(), fd_, what, &Stream::on_event, this);
  event_add(&event_, nullptr);
  is_watched_ = true;
}

void Stream::remove_event() {
  if (is_watched_) event_del(&event_);
  is_watched_ = false;
}

void Stream::detach() {
  if (segments_) flush();
  if (loop_ == nullptr) return;
  loop_->unmark_dirty(*this);
  remove_event();
  loop_ = nullptr;
}

void Stream::close() {
  if (fd_ < 0) return;
  if (loop_ != nullptr) {
    drop_segments();
    loop_->unmark_dirty(*this);
    remove_event();
    loop_ = nullptr;
  }
  ssl_.reset();
  ::close(fd_);
  fd_ = -1;
  readable_ = false;
  backlog_ = {};
  sent_ = 0;
}

int Stream::release() {
  if (fd_ < 0) return -1;
  detach();
  ssl_.reset();
  readable_ = false;
  return std::exchange(fd_, -1);
}

void Stream::close_politely() {
  if (fd_ < 0) return;
  flush();
  if (!broken_) {
    if (ssl_ && SSL_is_init_finished(ssl_.get())) {
      ERR_clear_error();
      SSL_shutdown(ssl_.get());
      flush();
    }
    shutdown(fd_, SHUT_WR);
    std::byte waste[4096];
    for (int i = 0; i < kDrainReads && recv(fd_, waste, sizeof waste, 0) > 0; ++i) {
    }
  }
  close();
}

void Stream::on_event(evutil_socket_t, short what, void* self) {
  auto* stream = static_cast<Stream*>(self);
  EventLoop& loop = *stream->loop_;
  if (what & (EV_READ | EV_CLOSED)) stream->readable_ = true;
  if (what & EV_CLOSED) stream->peer_closed_ = true;
  if ((what & EV_WRITE) && stream->is_blocked()) stream->flush();
  if (stream->is_open()) stream->owner_.on_stream_event();
  loop.end_turn();
}

ReadResult Stream::read(std::span<std::byte> buffer) {
  if (fd_ < 0 || !readable_) return {ReadStatus::Empty};
  return ssl_ ? read_tls(buffer) : read_plain(buffer.data(), buffer.size());
}

bool Stream::take_error() const {
  int error = 0;
  socklen_t size = sizeof error;
  return fd_ >= 0 && getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0;
}

bool Stream::has_peer_ended() const {
  pollfd look{fd_, POLLRDHUP, 0};
  return fd_ < 0 || (poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

bool Stream::has_input_waiting() const {
  std::byte waste;
  return fd_ >= 0 && (recv(fd_, &waste, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
}

ReadResult Stream::read_plain(std::byte* buffer, std::size_t size) {
  ssize_t n;
  do {
    n = recv(fd_, buffer, size, 0);
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    auto got = static_cast<std::size_t>(n);
    // Everything there was has been read; what comes later is a new edge. Not so after the peer's end: no edge follows.
    if (got < size && !peer_closed_) readable_ = false;
    return {ReadStatus::Data, got};
  }
  if (n == 0) return {ReadStatus::Eof};
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    readable_ = false;
    return {ReadStatus::Empty};
  }
  return {ReadStatus::Failed};
}

ReadResult Stream::read_tls(std::span<std::byte> buffer) {
  std::size_t got = 0;
  while (got < buffer.size()) {
    ERR_clear_error();
    std::size_t n = 0;
    if (SSL_read_ex(ssl_.get(), buffer.data() + got, buffer.size() - got, &n) == 1) {
      got += n;
      // Nothing more in the TLS layer or the kernel: no need to ask again.
      if (!readable_ && tls_unread_.empty() && SSL_has_pending(ssl_.get()) == 0) return {ReadStatus::Data, got};
      continue;
    }
    int why = SSL_get_error(ssl_.get(), 0);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
      if (got > 0) return {ReadStatus::Data, got};
      return {ReadStatus::Empty};
    }
    if (got > 0) {  // deliver first; the next call meets the end again
      readable_ = true;
      return {ReadStatus::Data, got};
    }
    return {why == SSL_ERROR_ZERO_RETURN ? ReadStatus::Eof : ReadStatus::Failed};
  }
  // The buffer is full and the TLS layer may hold more, of which the kernel will not tell.
  readable_ = true;
  return {ReadStatus::Data, got};
}

void Stream::send_segment(Bytes bytes) {
  if (broken_ || loop_ == nullptr || bytes.empty()) return;
  if (!segments_) {
    segments_ = loop_->take_segments();
    loop_->mark_dirty(*this);
  }
  segments_->push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
}

void Stream::send_copy(Bytes bytes) {
  if (broken_ || loop_ == nullptr || bytes.empty()) return;
  std::byte* copy = loop_->arena().allocate(bytes.size());
  std::memcpy(copy, bytes.data(), bytes.size());
  send({copy, bytes.size()});
}

void Stream::flush() {
  if (fd_ < 0 || broken_) return drop_segments();
  if (segments_) {
    if (ssl_)
      encrypt_segments();
    else if (is_blocked())
      stash(*segments_, 0);
    else
      send_segments();
    if (broken_) return;
    drop_segments();
  }
  if (is_blocked()) send_backlog();
}

void Stream::drop_segments() {
  if (segments_ && loop_ != nullptr) loop_->give_segments(std::move(segments_));
  segments_.reset();
}

// Copying a few bytes costs less than having the kernel collect them.
void Stream::join_segments(std::size_t up_to) {
  SegmentList& list = *segments_;
  if (list.size() < 2) return;
  std::size_t total = 0;
  for (const iovec& v : list) total += v.iov_len;
  if (total > up_to) return;
  std::byte* joined = loop_->arena().allocate(total);
  std::size_t at = 0;
  for (const iovec& v : list) {
    std::memcpy(joined + at, v.iov_base, v.iov_len);
    at += v.iov_len;
  }
  list.assign(1, {joined, total});
}

void Stream::encrypt_segments() {
  join_segments(std::numeric_limits<std::size_t>::max());  // short pieces together make one record
  const auto* data = static_cast<const std::byte*>(segments_->front().iov_base);
  std::size_t total = segments_->front().iov_len;
  for (std::size_t at = 0; at < total;) {
    std::size_t n = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_.get(), data + at, std::min(kTlsRecord, total - at), &n) != 1) return fail();
    at += n;
  }
}

void Stream::stash(const SegmentList& segments, std::size_t skip) {
  for (const iovec& v : segments) {
    if (skip >= v.iov_len) {
      skip -= v.iov_len;
      continue;
    }
    const auto* p = static_cast<const std::byte*>(v.iov_base);
    backlog_.insert(backlog_.end(), p + skip, p + v.iov_len);
    skip = 0;
  }
}

void Stream::send_segments() {
  join_segments(segments_->size() > kMaxSegments ? std::numeric_limits<std::size_t>::max() : kMaxJoined);
  ssize_t n;
  do {
    if (segments_->size() == 1) {
      n = ::send(fd_, (*segments_)[0].iov_base, (*segments_)[0].iov_len, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = segments_->data();
      message.msg_iovlen = segments_->size();
      n = sendmsg(fd_, &message, MSG_NOSIGNAL);
    }
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return fail();
  stash(*segments_, n < 0 ? 0 : static_cast<std::size_t>(n));
  if (is_blocked()) want_write(true);
}

void Stream::send_backlog() {
  while (is_blocked()) {
    ssize_t n = ::send(fd_, backlog_.data() + sent_, backlog_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return want_write(true);
    if (n < 0) return fail();
    sent_ += static_cast<std::size_t>(n);
  }
  // An idle connection holds no buffer; a TLS record of a small answer does not need a new one each time.
  if (backlog_.capacity() > 1024 || !ssl_)
    backlog_ = {};
  else
    backlog_.clear();
  sent_ = 0;
  want_write(false);
}

void Stream::want_write(bool on) {
  if (on == write_interest_ || loop_ == nullptr || (!on && !is_unix_)) return;
  remove_event();
  add_event(on);
}

void Stream::fail() {
  broken_ = true;
  backlog_ = {};
  sent_ = 0;
  drop_segments();
  owner_.on_send_failed();
}

void Stream::start_tls(SslPtr ssl) {
  ssl_ = std::move(ssl);
  BIO* bio = BIO_new(stream_bio());
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
}

HandshakeStatus Stream::handshake() {
  ERR_clear_error();
  int r = SSL_do_handshake(ssl_.get());
  if (is_blocked()) loop_->mark_dirty(*this);
  if (r == 1) {
    // Application bytes may have come in the same segment as the end of the handshake.
    if (SSL_has_pending(ssl_.get())) readable_ = true;
    return HandshakeStatus::Done;
  }
  int why = SSL_get_error(ssl_.get(), r);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return HandshakeStatus::InProgress;
  return HandshakeStatus::Failed;
}

void Stream::unread_for_tls(Bytes bytes) { tls_unread_.insert(tls_unread_.end(), bytes.begin(), bytes.end()); }

}  // namespace lokadb
