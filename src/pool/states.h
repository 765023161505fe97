// The states of a client session and of a server connection, and every legal move between them.
// Nobody else decides: set_state() of each asks next_state() and treats "no" as a fault that closes the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lokadb {

enum class ClientState : std::uint8_t {
  Startup,     // no start-up packet yet (TLS handshake included)
  Login,       // proving who it is
  UserWanted,  // in its login; waits for a server that can say who the user is
  UserAsked,   // in its login; has the server, which is being asked
  Welcome,     // logged in, but the pool has not learnt the server's parameters yet
  Idle,        // logged in, no server
  Waiting,     // has asked for a server
  Preparing,   // has a server, whose parameters are being set to the client's, or learnt from it
  Active,      // has a server
  Console,     // talks to the admin console
  Leaving,     // gone or going; its server still finishes what was asked
  Closed,
};

enum class ClientEvent : std::uint8_t {
  StartupRead,     // Startup -> Login
  LoggedIn,        // Login -> Welcome or Idle
  MustWait,        // Login -> Welcome
  Welcomed,        // Welcome -> Idle
  ConsoleOpened,   // Login -> Console
  ServerAsked,     // Idle -> Waiting; Login -> UserWanted
  ServerGiven,     // Idle, Waiting -> Active; Login, UserWanted -> UserAsked
  ServerToSet,     // Idle, Waiting -> Preparing
  ServerSet,       // Preparing -> Active
  ServerToAsk,     // Active -> Preparing: which settings the client has left there
  ServerReleased,  // Active, Leaving -> Idle; UserAsked -> Login
  ClientLeft,      // Active -> Leaving
  Closed,          // any -> Closed
};

enum class ServerState : std::uint8_t {
  Login,          // connecting or logging in
  Idle,           // free, in its pool
  Testing,        // a check, reset or connect query of ours is running
  Active,         // serves a client
  BeingCanceled,  // free, but a cancel for its last client is under way
  Moving,         // on its way to another worker
  Closed,
};

enum class ServerEvent : std::uint8_t {
  LoggedIn,       // Login -> Idle
  TestStarted,    // Login, Active, Idle, BeingCanceled -> Testing
  TestPassed,     // Testing -> Idle
  Linked,         // Idle, Moving -> Active
  Released,       // Active, BeingCanceled -> Idle
  CancelAwaited,  // Active -> BeingCanceled
  Sent,           // Idle -> Moving
  Returned,       // Moving -> Idle
  Closed,         // any -> Closed
};

constexpr std::optional<ClientState> next_state(ClientState from, ClientEvent event) {
  using S = ClientState;
  using E = ClientEvent;
  if (event == E::Closed) {
    if (from == S::Closed) return std::nullopt;
    return S::Closed;
  }
  if (from == S::Startup && event == E::StartupRead) return S::Login;
  if (from == S::Login && event == E::LoggedIn) return S::Idle;
  if (from == S::Login && event == E::MustWait) return S::Welcome;
  if (from == S::Login && event == E::ConsoleOpened) return S::Console;
  if (from == S::Login && event == E::ServerAsked) return S::UserWanted;
  if ((from == S::Login || from == S::UserWanted) && event == E::ServerGiven) return S::UserAsked;
  if (from == S::UserAsked && event == E::ServerReleased) return S::Login;
  if (from == S::Welcome && event == E::Welcomed) return S::Idle;
  if (from == S::Idle && event == E::ServerAsked) return S::Waiting;
  if ((from == S::Idle || from == S::Waiting) && event == E::ServerGiven) return S::Active;
  if ((from == S::Idle || from == S::Waiting) && event == E::ServerToSet) return S::Preparing;
  if (from == S::Preparing && event == E::ServerSet) return S::Active;
  if (from == S::Active && event == E::ServerToAsk) return S::Preparing;
  if ((from == S::Active || from == S::Leaving) && event == E::ServerReleased) return S::Idle;
  if (from == S::Active && event == E::ClientLeft) return S::Leaving;
  return std::nullopt;
}

constexpr std::optional<ServerState> next_state(ServerState from, ServerEvent event) {
  using S = ServerState;
  using E = ServerEvent;
  if (event == E::Closed) {
    if (from == S::Closed) return std::nullopt;
    return S::Closed;
  }
  if (from == S::Login && event == E::LoggedIn) return S::Idle;
  if (event == E::TestStarted && (from == S::Login || from == S::Active || from == S::Idle || from == S::BeingCanceled))
    return S::Testing;
  if (from == S::Testing && event == E::TestPassed) return S::Idle;
  if ((from == S::Idle || from == S::Moving) && event == E::Linked) return S::Active;
  if ((from == S::Active || from == S::BeingCanceled) && event == E::Released) return S::Idle;
  if (from == S::Active && event == E::CancelAwaited) return S::BeingCanceled;
  if (from == S::Idle && event == E::Sent) return S::Moving;
  if (from == S::Moving && event == E::Returned) return S::Idle;
  return std::nullopt;
}

std::string_view name_of(ClientState);
std::string_view name_of(ServerState);

}  // namespace lokadb
