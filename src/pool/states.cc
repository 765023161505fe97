#include "pool/states.h"

#include <iterator>

namespace lokadb {

namespace {
constexpr std::string_view kClientNames[] = {"startup", "login",   "checking", "user_wanted", "user_asked",
                                             "welcome", "idle",    "waiting",  "preparing",   "active",
                                             "console", "leaving", "closed"};
constexpr std::string_view kServerNames[] = {"login",          "idle",   "testing", "active",
                                             "being_canceled", "moving", "closed"};
static_assert(std::size(kClientNames) == static_cast<std::size_t>(ClientState::Closed) + 1);
static_assert(std::size(kServerNames) == static_cast<std::size_t>(ServerState::Closed) + 1);
}  // namespace

std::string_view name_of(ClientState s) { return kClientNames[static_cast<int>(s)]; }
std::string_view name_of(ServerState s) { return kServerNames[static_cast<int>(s)]; }

}  // namespace lokadb
