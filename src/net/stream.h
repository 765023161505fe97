// One connection's bytes: reading with edge-triggered events, and an output queue that is sent once a turn.
// Hides whether the bytes go through TLS. Belongs to one loop at a time.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "net/loop.h"

namespace lokadb {

// Who reads and writes a Stream. Calls come from the loop's thread.
class StreamOwner : public Resumable {
 public:
  // Something changed: bytes can be read (is_readable()), the backlog has gone out, a connect ended, or the peer
  // closed.
  virtual void on_stream_event() = 0;
  // Sending failed; the stream is broken. Called from the end of a turn, at most once.
  virtual void on_send_failed() = 0;

 protected:
  ~StreamOwner() = default;
};

enum class ReadStatus { Data, Empty, Eof, Failed };
struct ReadResult {
  ReadStatus status;
  std::size_t size = 0;  // for Data
};

enum class HandshakeStatus { Done, InProgress, Failed };

class Stream : public ListHook<DirtyTag> {
 public:
  explicit Stream(StreamOwner& owner) : owner_(owner) {}
  ~Stream() { close(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Takes over the descriptor (non-blocking). is_unix: no write interest until it is needed, since the kernel reports
  // every read of the peer as an edge there.
  void open(EventLoop& loop, int fd, bool is_unix);
  // The same for one that was accepted, without asking the kernel for events before watch(): what can be read or
  // written then takes a place in the kernel's line, in which the connection's next bytes would come before older ones
  // of others. So that is called when what has come with the connection was read.
  void open_accepted(EventLoop& loop, int fd, bool is_unix);
  void watch();
  void close();
  // Says goodbye first: sends what the kernel takes, ends TLS, and reads what the peer has sent already, since bytes
  // left unread would make the kernel throw away our last words.
  void close_politely();
  // Gives up the descriptor without closing it.
  int release();
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // Moves to another loop: detach on the old loop's thread, attach on the new one's.
  void detach();
  void attach(EventLoop& loop);

  // Input. is_readable(): the kernel (or the TLS layer) may have bytes that were not read yet; stays true over a pause,
  // so nobody needs a new event to go on.
  bool is_readable() const { return readable_; }
  // Look again, though the last read took less than it could. A reset that comes together with data is told by one
  // edge only: whoever will not soon write to the peer, and so learn of it, has to look twice.
  void assume_readable() { readable_ = true; }
  ReadResult read(std::span<std::byte> buffer);
  // Whether something waits in the kernel: bytes, the end, or an error. One system call; nothing is taken.
  bool has_input_waiting() const;
  // Whether the kernel has told of something that was not looked at yet, in this turn or before. No system call.
  bool has_news() const { return readable_ || (event_.ev_evcallback.evcb_flags & EVLIST_ACTIVE) != 0; }
  // Whether the peer has ended its sending side, or the connection broke, though bytes before that may be unread. One
  // system call.
  bool has_peer_ended() const;
  // Whether the kernel has an error for it, such as a reset: told even after the peer's end was read. Asked once, as
  // the kernel forgets it then.
  bool take_error() const;

  // Output. The bytes must live until the turn ends (receive buffer, turn arena, static storage).
  void send(Bytes bytes) {
    if (segments_ != nullptr && !segments_->empty() && !broken_) {
      iovec& last = segments_->back();
      if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == bytes.data()) {
        last.iov_len += bytes.size();
        return;
      }
    }
    send_segment(bytes);
  }
  void send_copy(Bytes bytes);
  // True while bytes wait for the peer to read: whoever feeds this stream pauses.
  bool is_blocked() const { return sent_ < backlog_.size(); }
  bool has_unsent() const { return is_blocked() || segments_ != nullptr; }
  void flush();
  std::size_t backlog_size() const { return backlog_.size() - sent_; }
  // Stops sending: further sends are dropped.
  bool is_broken() const { return broken_; }

  // TLS. start_tls before any application byte; then handshake() whenever the owner is called, until it is done.
  using SslPtr = std::unique_ptr<SSL, Calls<SSL_free>>;
  void start_tls(SslPtr ssl);
  HandshakeStatus handshake();
  SSL* ssl() const { return ssl_.get(); }
  // Bytes that came before TLS started but were not read by the owner go to TLS first (direct TLS).
  void unread_for_tls(Bytes bytes);

 private:
  static void on_event(evutil_socket_t, short what, void* self);
  friend int stream_bio_read(BIO*, char*, int);
  friend int stream_bio_write(BIO*, const char*, int);
  void add_event(bool with_write);
  void send_segment(Bytes bytes);
  void want_write(bool on);
  void remove_event();
  ReadResult read_plain(std::byte* buffer, std::size_t size);
  ReadResult read_tls(std::span<std::byte> buffer);
  // Makes them one piece if they are at most up_to bytes together.
  void join_segments(std::size_t up_to);
  void encrypt_segments();
  void send_segments();
  void send_backlog();
  void stash(const SegmentList& segments, std::size_t skip);
  void drop_segments();
  void fail();

  StreamOwner& owner_;
  EventLoop* loop_ = nullptr;
  int fd_ = -1;
  bool readable_ = false;
  bool peer_closed_ = false;  // the kernel has told of the end: a short read does not mean that all was read
  bool broken_ = false;
  bool is_unix_ = false;
  bool write_interest_ = false;
  bool is_watched_ = false;
  event event_{};
  std::unique_ptr<SegmentList> segments_;  // borrowed bytes of this turn; null when there are none
  std::vector<std::byte> backlog_;         // what the kernel would not take (under TLS: records)
  std::size_t sent_ = 0;                   // of backlog_
  SslPtr ssl_;
  std::vector<std::byte> tls_unread_;
};

}  // namespace lokadb
