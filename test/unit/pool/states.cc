// Every state with every event: the legal moves are listed here once more, all others must be refused.
#include "pool/states.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

namespace lokadb {
namespace {

template <class State, class Event>
struct Move {
  State from;
  Event event;
  State to;
};

// The enumerators up to and with Closed, which is the last one of each enum.
template <class Enum>
constexpr int kCount = static_cast<int>(Enum::Closed) + 1;
static_assert(kCount<ClientState> == 12 && kCount<ClientEvent> == 13, "extend the table below");
static_assert(kCount<ServerState> == 7 && kCount<ServerEvent> == 9, "extend the table below");

using C = ClientState;
using CE = ClientEvent;
constexpr Move<C, CE> kClientMoves[] = {
    {C::Startup, CE::StartupRead, C::Login},
    {C::Startup, CE::Closed, C::Closed},
    {C::Login, CE::LoggedIn, C::Idle},
    {C::Login, CE::MustWait, C::Welcome},
    {C::Login, CE::ConsoleOpened, C::Console},
    {C::Login, CE::Closed, C::Closed},
    {C::Login, CE::ServerAsked, C::UserWanted},
    {C::Login, CE::ServerGiven, C::UserAsked},
    {C::UserWanted, CE::ServerGiven, C::UserAsked},
    {C::UserWanted, CE::Closed, C::Closed},
    {C::UserAsked, CE::ServerReleased, C::Login},
    {C::UserAsked, CE::Closed, C::Closed},
    {C::Welcome, CE::Welcomed, C::Idle},
    {C::Welcome, CE::Closed, C::Closed},
    {C::Idle, CE::ServerAsked, C::Waiting},
    {C::Idle, CE::ServerGiven, C::Active},
    {C::Idle, CE::ServerToSet, C::Preparing},
    {C::Idle, CE::Closed, C::Closed},
    {C::Waiting, CE::ServerGiven, C::Active},
    {C::Waiting, CE::ServerToSet, C::Preparing},
    {C::Waiting, CE::Closed, C::Closed},
    {C::Preparing, CE::ServerSet, C::Active},
    {C::Preparing, CE::Closed, C::Closed},
    {C::Active, CE::ServerToAsk, C::Preparing},
    {C::Active, CE::ServerReleased, C::Idle},
    {C::Active, CE::ClientLeft, C::Leaving},
    {C::Active, CE::Closed, C::Closed},
    {C::Console, CE::Closed, C::Closed},
    {C::Leaving, CE::ServerReleased, C::Idle},
    {C::Leaving, CE::Closed, C::Closed},
};

using S = ServerState;
using SE = ServerEvent;
constexpr Move<S, SE> kServerMoves[] = {
    {S::Login, SE::LoggedIn, S::Idle},         {S::Login, SE::TestStarted, S::Testing},
    {S::Login, SE::Closed, S::Closed},         {S::Idle, SE::TestStarted, S::Testing},
    {S::Idle, SE::Linked, S::Active},          {S::Idle, SE::Sent, S::Moving},
    {S::Idle, SE::Closed, S::Closed},          {S::Testing, SE::TestPassed, S::Idle},
    {S::Testing, SE::Closed, S::Closed},       {S::Active, SE::TestStarted, S::Testing},
    {S::Active, SE::Released, S::Idle},        {S::Active, SE::CancelAwaited, S::BeingCanceled},
    {S::Active, SE::Closed, S::Closed},        {S::BeingCanceled, SE::TestStarted, S::Testing},
    {S::BeingCanceled, SE::Released, S::Idle}, {S::BeingCanceled, SE::Closed, S::Closed},
    {S::Moving, SE::Linked, S::Active},        {S::Moving, SE::Returned, S::Idle},
    {S::Moving, SE::Closed, S::Closed},
};

template <class State, class Event, std::size_t N>
void check_grid(const Move<State, Event> (&legal)[N]) {
  std::size_t found = 0;
  for (int from = 0; from < kCount<State>; ++from) {
    for (int event = 0; event < kCount<Event>; ++event) {
      std::optional<State> expected;
      for (const auto& move : legal)
        if (static_cast<int>(move.from) == from && static_cast<int>(move.event) == event) expected = move.to;
      auto next = next_state(static_cast<State>(from), static_cast<Event>(event));
      BOOST_TEST((next == expected), name_of(static_cast<State>(from)) << " with event " << event << " leads to "
                                                                       << (next ? name_of(*next) : "a refusal"));
      found += expected.has_value();
    }
  }
  BOOST_TEST(found == N);  // no row is there twice
}

// Everything that can be reached from the first state by legal moves.
template <class State, class Event, std::size_t N>
std::size_t count_reachable(const Move<State, Event> (&legal)[N], State first) {
  std::set<State> seen{first};
  for (std::size_t before = 0; before != seen.size();) {
    before = seen.size();
    for (const auto& move : legal)
      if (seen.contains(move.from)) seen.insert(move.to);
  }
  return seen.size();
}

BOOST_AUTO_TEST_SUITE(pool_states)

BOOST_AUTO_TEST_CASE(all_moves_of_a_client) { check_grid(kClientMoves); }
BOOST_AUTO_TEST_CASE(all_moves_of_a_server) { check_grid(kServerMoves); }

BOOST_AUTO_TEST_CASE(every_state_can_be_reached) {
  BOOST_TEST(count_reachable(kClientMoves, C::Startup) == 12u);
  BOOST_TEST(count_reachable(kServerMoves, S::Login) == 7u);
}

BOOST_AUTO_TEST_CASE(nothing_leaves_the_closed_state) {
  for (int event = 0; event < kCount<ClientEvent>; ++event)
    BOOST_TEST(!next_state(ClientState::Closed, static_cast<ClientEvent>(event)));
  for (int event = 0; event < kCount<ServerEvent>; ++event)
    BOOST_TEST(!next_state(ServerState::Closed, static_cast<ServerEvent>(event)));
}

BOOST_AUTO_TEST_CASE(states_have_names_of_their_own) {
  std::set<std::string_view> clients, servers;
  for (int i = 0; i < kCount<ClientState>; ++i) clients.insert(name_of(static_cast<ClientState>(i)));
  for (int i = 0; i < kCount<ServerState>; ++i) servers.insert(name_of(static_cast<ServerState>(i)));
  BOOST_TEST(clients.size() == 12u);
  BOOST_TEST(servers.size() == 7u);
  BOOST_TEST(name_of(ClientState::Startup) == "startup");
  BOOST_TEST(name_of(ClientState::Console) == "console");
  BOOST_TEST(name_of(ClientState::Closed) == "closed");
  BOOST_TEST(name_of(ServerState::BeingCanceled) == "being_canceled");
  BOOST_TEST(name_of(ServerState::Closed) == "closed");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
