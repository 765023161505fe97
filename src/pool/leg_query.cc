#include "pool/leg_query.h"

#include "pool/pooler.h"
#include "pool/prepared.h"
#include "pool/server_connection.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxAnswer = 16u << 20;
}  // namespace

StatementPtr statement_of(const BatchStep& step, const TrackedNames& tracked) {
  ByteBuffer body;
  body.cstring(step.sql);
  body.u16(static_cast<std::uint16_t>(step.values.size()));
  for (const auto& value : step.values) body.u32(value.type);
  return intern_statement(body.bytes(), tracked);
}

void write_values(MessageWriter& message, const std::vector<BatchStep::Value>& values) {
  for (const auto& value : values) {
    message->u32(value.is_null ? 0xffffffffu : static_cast<std::uint32_t>(value.value.size()));
    if (!value.is_null) message->text(value.value);
  }
}

void write_bind(ByteBuffer& out, std::string_view portal, std::string_view statement, const BatchStep& step) {
  MessageWriter m(out, 'B');
  m->cstring(portal);
  m->cstring(statement);
  m->u16(static_cast<std::uint16_t>(step.values.size()));
  for (const auto& value : step.values) m->u16(value.is_binary ? 1 : 0);
  m->u16(static_cast<std::uint16_t>(step.values.size()));
  write_values(m, step.values);
  m->u16(0);  // all columns as text
}

LegQuery::LegQuery(ServerConnection& server, std::vector<BatchStep*> steps, std::vector<std::string> to_describe,
                   Finished done)
    : server_(&server), steps_(std::move(steps)), to_describe_(std::move(to_describe)), done_(std::move(done)) {}

void LegQuery::start() {
  server_->capture(*this);
  for (BatchStep* step : steps_) send(*step);
  for (const std::string& body : to_describe_) send_describe(body);
  static constexpr char kSync[] = {'S', 0, 0, 0, 4};
  server_->expect(Request::Sync);
  server_->forward(as_bytes({kSync, sizeof kSync}));
}

void LegQuery::send(BatchStep& step) {
  step.rows.clear();
  StatementPtr statement = statement_of(step, server_->pooler.tracked);
  server_->ensure_prepared(statement);
  ByteBuffer out;
  write_bind(out, "", statement->server_name(), step);
  server_->expect_use(Request::Bind, *statement);
  {
    MessageWriter m(out, 'E');
    m->cstring("");
    m->u32(0);
  }
  server_->expect(Request::Execute);
  server_->stream().send_copy(out.bytes());
}

// Under a name that nobody keeps; the unnamed statement may be the client's.
void LegQuery::send_describe(const std::string& body) {
  ByteBuffer out;
  auto about_name = [&](char type) {
    MessageWriter m(out, type);
    m->u8('S');
    m->cstring(ServerConnection::kThrowaway);
  };
  about_name('C');
  server_->expect(Request::Close, false);
  {
    MessageWriter m(out, 'P');
    m->cstring(ServerConnection::kThrowaway);
    m->append(as_bytes(body));
  }
  server_->expect(Request::Parse, false);
  about_name('D');
  server_->expect(Request::Describe);
  about_name('C');
  server_->expect(Request::Close, false);
  server_->stream().send_copy(out.bytes());
}

void LegQuery::on_answer(Bytes bytes, bool) {
  input_.insert(input_.end(), bytes.begin(), bytes.end());
  if (input_.size() > kMaxAnswer) return server_->close("answer to a plugin's statement is too large");
  Bytes rest = input_;
  while (server_ != nullptr && take_message(rest)) {
  }
  if (server_ == nullptr) return;
  input_.erase(input_.begin(), input_.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

bool LegQuery::take_message(Bytes& rest) {
  auto head = peek_head(rest);
  if (!head || rest.size() < kHeaderSize + head->body) return false;
  Bytes message = rest.first(kHeaderSize + head->body);
  rest = rest.subspan(message.size());
  switch (head->type) {
    case 'D':
      take_row(message.subspan(kHeaderSize));
      break;
    case 'C':
    case 'I':
      if (current_ < steps_.size()) steps_[current_++]->is_done = true;
      break;
    case 't':
      parameters_.assign(message.begin() + kHeaderSize, message.end());
      break;
    case 'T':
    case 'n':
      take_description(head->type, message.subspan(kHeaderSize));
      break;
    case 'E':
      if (auto fields = parse_error_fields(message.subspan(kHeaderSize))) result_.error_code = fields->code;
      if (result_.error_code.empty()) result_.error_code = "XX000";
      result_.error.assign(message.begin(), message.end());
      break;
    case 'G':  // it would wait for ever, as nobody has data for it
      server_->close("a plugin's statement asks for data (COPY ... FROM STDIN)");
      break;
    default:
      break;
  }
  return true;
}

void LegQuery::take_description(char type, Bytes body) {
  result_.forms.push_back(form_of_statement(parameters_, type == 'n' ? kNoRows : mark_of_rows(body)));
}

void LegQuery::take_row(Bytes body) {
  if (current_ >= steps_.size()) return;
  MessageReader reader(body);
  auto& row = steps_[current_]->rows.emplace_back();
  for (std::size_t n = reader.u16(); n > 0; --n) {
    std::uint32_t size = reader.u32();
    bool is_null = size == 0xffffffffu;
    row.emplace_back(is_null, is_null ? std::string() : std::string(as_text(reader.take(size))));
  }
}

void LegQuery::on_ready(ServerConnection&, char) { done_(result_); }

void LegQuery::on_server_lost(ServerConnection&, const Error& error) {
  server_ = nullptr;
  result_.is_lost = true;
  result_.lost_because = error;
  done_(result_);
}

}  // namespace lokadb
