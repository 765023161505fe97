// PostgreSQL protocol 3 messages (manual, "Frontend/Backend Protocol"): type codes, framing, reading and writing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace lokadb {

inline constexpr std::size_t kHeaderSize = 5;  // type byte, length (which counts itself, not the type)

// Type byte and body length of a message; valid only for a length of at least 4.
struct MessageHead {
  char type;
  std::uint32_t body;  // bytes after the header
};

// nullopt: fewer than 5 bytes there. A length below 4 gives body == kBadLength.
inline constexpr std::uint32_t kBadLength = 0xffffffff;
inline std::optional<MessageHead> peek_head(Bytes b) {
  if (b.size() < kHeaderSize) return std::nullopt;
  std::uint32_t length = load_u32(b.data() + 1);
  return MessageHead{static_cast<char>(b[0]), length < 4 || length > 0x7fffffff ? kBadLength : length - 4};
}

// Bytes of the messages at the front of `in` that are of the same type as its first and have bodies of at most max_body
// bytes: so that rows and COPY data are told by the run, not one by one. The last of them may go on beyond `in`; 0: the
// first is not one of them, or its head is not all there.
std::size_t run_length(Bytes in, std::uint32_t max_body);

// Reads fields of one body. After the first short read the reader stays failed: parse all fields, ask ok() once.
class MessageReader {
 public:
  explicit MessageReader(Bytes body) : rest_(body) {}
  std::uint8_t u8() {
    Bytes b = take(1);
    return b.empty() ? 0 : static_cast<std::uint8_t>(b[0]);
  }
  std::uint16_t u16() {
    Bytes b = take(2);
    return b.empty() ? 0 : load_u16(b.data());
  }
  std::uint32_t u32() {
    Bytes b = take(4);
    return b.empty() ? 0 : load_u32(b.data());
  }
  // Up to the zero byte, which is consumed and not part of the view.
  std::string_view cstring();
  Bytes take(std::size_t n);
  Bytes rest() const { return rest_; }
  bool ok() const { return !failed_; }
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  Bytes rest_;
  bool failed_ = false;
};

// Appends one message to a buffer: the length is filled in by the destructor.
class MessageWriter {
 public:
  MessageWriter(ByteBuffer& out, char type);
  ~MessageWriter();
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;
  ByteBuffer* operator->() { return &out_; }

 private:
  ByteBuffer& out_;
  std::size_t start_;
};

// Fields of an ErrorResponse or NoticeResponse; views into the body. Missing ones are empty.
struct ErrorFields {
  std::string_view severity;  // V if there, else S
  std::string_view code;
  std::string_view message;
};
// nullopt: not even a severity, code or message could be read.
std::optional<ErrorFields> parse_error_fields(Bytes body);

void write_error(ByteBuffer& out, const Error& error);  // ErrorResponse with S, C, M (as PgBouncer: no V)
void write_notice(ByteBuffer& out, std::string_view code, std::string_view message, std::string_view detail = {});
void write_ready_for_query(ByteBuffer& out, char status);
void write_parameter_status(ByteBuffer& out, std::string_view name, std::string_view value);
void write_query(ByteBuffer& out, std::string_view sql);

}  // namespace lokadb
