// What a connection has read but not handled yet. While every message arrives whole, which is nearly always, nothing is
// kept: bytes are handled in the loop's shared receive buffer, and an idle connection holds no memory here.
#pragma once

#include <cstring>
#include <vector>

#include "net/stream.h"

namespace lokadb {

class Input {
 public:
  bool empty() const { return carry_.empty(); }
  std::size_t size() const { return carry_.size(); }
  void clear() { carry_ = {}; }
  // Bytes that somebody else has read.
  void put(std::vector<std::byte> bytes) { carry_ = std::move(bytes); }
  // The bytes kept so far.
  Bytes kept() const { return carry_; }

  // Reads once and calls consume(bytes), which returns how many of them it has done with; the rest is kept and comes
  // again in front of the next bytes. What consume() passes to Stream::send stays valid until the turn ends.
  template <class Consume>
  ReadResult read(Stream& stream, EventLoop& loop, Consume&& consume) {
    if (carry_.empty()) {
      std::span<std::byte> buffer = loop.receive_buffer();
      ReadResult r = stream.read(buffer);
      if (r.status == ReadStatus::Data) {
        Bytes in = Bytes(buffer).first(r.size);
        keep(loop, in.subspan(consume(in)));
      }
      return r;
    }
    std::size_t old = carry_.size();
    carry_.resize(old + loop.receive_buffer().size());
    ReadResult r = stream.read(std::span(carry_).subspan(old));
    carry_.resize(old + (r.status == ReadStatus::Data ? r.size : 0));
    if (r.status == ReadStatus::Data) retry(loop, consume);
    return r;
  }

  // Calls consume with what is kept.
  template <class Consume>
  void retry(EventLoop& loop, Consume&& consume) {
    std::vector<std::byte> bytes = std::move(carry_);
    carry_ = {};
    std::size_t used = consume(Bytes(bytes));
    if (used == 0) {
      carry_ = std::move(bytes);  // a long message on its way: not copied again with each piece
      return;
    }
    keep(loop, Bytes(bytes).subspan(used));
    loop.arena().adopt(std::move(bytes));
  }

 private:
  void keep(EventLoop& loop, Bytes rest) {
    if (rest.empty()) return;
    carry_ = loop.arena().recycled();
    carry_.assign(rest.begin(), rest.end());
  }

  std::vector<std::byte> carry_;
};

}  // namespace lokadb
