// Statements of our own on a server that is linked to a client: sent in one packet, their rows kept for the plugin that
// asked; and in the same packet texts that the server is to describe without running them. Worker of the server.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/loop.h"
#include "plugin/batch.h"
#include "pool/answer_sink.h"
#include "pool/prepared.h"
#include "proto/message.h"

namespace lokadb {

// What a Parse says of it after the name; the Bind that runs it in a portal.
StatementPtr statement_of(const BatchStep& step, const TrackedNames& tracked);
void write_values(MessageWriter& message, const std::vector<BatchStep::Value>& values);  // with their sizes
void write_bind(ByteBuffer& out, std::string_view portal, std::string_view statement, const BatchStep& step);

class LegQuery final : public AnswerSink, public Buriable {
 public:
  struct Result {
    bool is_lost = false;          // the server has been closed
    std::string error_code;        // empty: none
    std::vector<std::byte> error;  // the server's ErrorResponse as it came
    Error lost_because;
    std::vector<RowsMark> forms;  // of what was to be described (form_of_statement), as far as there was no error
  };
  // `done` is called once; the object may be buried then, not deleted.
  using Finished = std::function<void(const Result&)>;

  // to_describe: bodies of Parse messages, text and types.
  LegQuery(ServerConnection& server, std::vector<BatchStep*> steps, std::vector<std::string> to_describe,
           Finished done);
  void start();
  ServerConnection* server() { return server_; }

  void on_answer(Bytes bytes, bool begins) override;
  void on_ready(ServerConnection& server, char status) override;
  void on_server_lost(ServerConnection& server, const Error& error) override;
  bool is_blocked() const override { return false; }

 private:
  void send(BatchStep& step);
  void send_describe(const std::string& body);
  bool take_message(Bytes& rest);
  void take_row(Bytes body);
  void take_description(char type, Bytes body);

  ServerConnection* server_;
  std::vector<BatchStep*> steps_;
  std::vector<std::string> to_describe_;
  std::vector<std::byte> parameters_;  // as the description that comes now has them
  Finished done_;
  std::size_t current_ = 0;  // the step whose answer comes now
  std::vector<std::byte> input_;
  Result result_;
};

}  // namespace lokadb
