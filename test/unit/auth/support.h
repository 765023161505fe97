// Messages of a login, and both ends of one talking to each other.
#pragma once

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "auth/client_auth.h"
#include "auth/server_auth.h"
#include "proto/message.h"

namespace lokadb::auth_test {

inline const std::string kUser = "alice", kPassword = "s3cret";

// Takes the only message in `buffer`, which must be of this type; its body.
inline std::string take_body(ByteBuffer& buffer, char type) {
  auto head = peek_head(buffer.bytes());
  BOOST_REQUIRE(head);
  BOOST_REQUIRE(head->type == type);
  BOOST_REQUIRE(buffer.size() == kHeaderSize + head->body);
  std::string body(as_text(buffer.bytes().subspan(kHeaderSize)));
  buffer.clear();
  return body;
}

inline std::string secret_of(SecretKind kind, const std::string& password = kPassword) {
  switch (kind) {
    case SecretKind::Empty:
      return "";
    case SecretKind::Plain:
      return password;
    case SecretKind::Md5:
      return md5_secret(password, kUser);
    case SecretKind::Scram:
      return to_text(make_scram_verifier(password, "0123456789abcdef", 4096));
  }
  return "";
}

// How a login of `client` at `door` ended.
struct Outcome {
  bool is_in = false;
  std::string code, text;  // of the error at the door
  std::string log;
  std::string client_error;
  std::vector<std::uint32_t> requests;  // authentication codes, in order
};

inline Outcome refused(const Error& error, Outcome so_far) {
  BOOST_CHECK(error.severity == Severity::Fatal);
  so_far.code = std::string(error.state.text());
  so_far.text = error.to_client;
  so_far.log = error.log_text();
  return so_far;
}

inline Outcome log_in(ClientAuth& door, ServerAuth& client) {
  Outcome outcome;
  ByteBuffer to_client, to_door;
  auto step = door.begin(to_client);
  while (true) {
    if (!step) return refused(step.error(), outcome);
    if (!to_client.empty()) {
      std::string request = take_body(to_client, 'R');
      outcome.requests.push_back(load_u32(as_bytes(request).data()));
      auto answered = client.on_request(as_bytes(request), to_door);
      if (!answered) {
        outcome.client_error = answered.error().to_client;
        return outcome;
      }
      BOOST_TEST(!*answered);
    }
    if (*step == AuthStep::Done) break;
    std::string answer = take_body(to_door, 'p');
    step = door.on_message(as_bytes(answer), to_client);
  }
  BOOST_TEST(to_door.empty());
  auto last = client.on_request(as_bytes(std::string_view("\0\0\0\0", 4)), to_door);
  if (last && *last) outcome.is_in = true;
  if (!last) outcome.client_error = last.error().to_client;
  return outcome;
}

}  // namespace lokadb::auth_test
