#include "proto/message.h"

#include <algorithm>

namespace lokadb {

std::size_t run_length(Bytes in, std::uint32_t max_body) {
  std::size_t at = 0;
  while (at < in.size()) {
    auto head = peek_head(in.subspan(at));
    if (!head || in[at] != in[0] || head->body > max_body) break;
    at += kHeaderSize + head->body;
  }
  return at;
}

std::string_view MessageReader::cstring() {
  std::size_t length = failed_ ? std::string_view::npos : as_text(rest_).find('\0');  // a memchr
  if (length == std::string_view::npos) {
    failed_ = true;
    return {};
  }
  std::string_view text = as_text(rest_.first(length));
  rest_ = rest_.subspan(length + 1);
  return text;
}

Bytes MessageReader::take(std::size_t n) {
  if (failed_ || n > rest_.size()) {
    failed_ = true;
    return {};
  }
  Bytes head = rest_.first(n);
  rest_ = rest_.subspan(n);
  return head;
}

MessageWriter::MessageWriter(ByteBuffer& out, char type) : out_(out), start_(out.size()) {
  *out_.extend(kHeaderSize) = static_cast<std::byte>(type);
}

MessageWriter::~MessageWriter() {
  // The length counts itself and the body, not the type byte.
  store_u32(out_.data() + start_ + 1, static_cast<std::uint32_t>(out_.size() - start_ - 1));
}

std::optional<ErrorFields> parse_error_fields(Bytes body) {
  ErrorFields fields;
  std::string_view localized_severity;
  MessageReader reader(body);
  // A body that breaks off early still counts for what could be read: it is shown to people, not acted upon.
  while (char field = static_cast<char>(reader.u8())) {
    std::string_view value = reader.cstring();
    if (field == 'V') fields.severity = value;
    if (field == 'S') localized_severity = value;
    if (field == 'C') fields.code = value;
    if (field == 'M') fields.message = value;
  }
  if (fields.severity.empty()) fields.severity = localized_severity;
  if (fields.severity.empty() && fields.code.empty() && fields.message.empty()) return std::nullopt;
  return fields;
}

namespace {

void write_field(MessageWriter& message, char field, std::string_view value) {
  message->u8(static_cast<std::uint8_t>(field));
  message->cstring(value);
}

}  // namespace

void write_error(ByteBuffer& out, const Error& error) {
  MessageWriter message(out, 'E');
  write_field(message, 'S', error.severity == Severity::Fatal ? "FATAL" : "ERROR");
  write_field(message, 'C', error.state.text());
  write_field(message, 'M', error.to_client);
  if (!error.detail.empty()) write_field(message, 'D', error.detail);
  if (!error.hint.empty()) write_field(message, 'H', error.hint);
  message->u8(0);
}

void write_notice(ByteBuffer& out, std::string_view code, std::string_view message_text, std::string_view detail) {
  MessageWriter message(out, 'N');
  write_field(message, 'S', "NOTICE");
  write_field(message, 'C', code);
  write_field(message, 'M', message_text);
  if (!detail.empty()) write_field(message, 'D', detail);
  message->u8(0);
}

void write_ready_for_query(ByteBuffer& out, char status) {
  MessageWriter message(out, 'Z');
  message->u8(static_cast<std::uint8_t>(status));
}

void write_parameter_status(ByteBuffer& out, std::string_view name, std::string_view value) {
  // A dozen of these in every welcome: in one piece.
  std::size_t body = name.size() + value.size() + 2;
  std::byte* p = out.extend(kHeaderSize + body);
  *p = std::byte{'S'};
  store_u32(p + 1, static_cast<std::uint32_t>(body + 4));
  p = std::copy_n(as_bytes(name).data(), name.size(), p + kHeaderSize);
  *p++ = std::byte{0};
  p = std::copy_n(as_bytes(value).data(), value.size(), p);
  *p = std::byte{0};
}

void write_query(ByteBuffer& out, std::string_view sql) {
  MessageWriter message(out, 'Q');
  message->cstring(sql);
}

}  // namespace lokadb
