#include "route/reasons.h"

namespace lokadb::route {

namespace {

constexpr ReasonInfo kReasons[] = {
#define X(name, id, text, advice) {id, text, advice},
    LOKADB_REASONS(X)
#undef X
};
constexpr ReasonInfo kNoReason{};

}  // namespace

std::span<const ReasonInfo> reasons() { return kReasons; }

const ReasonInfo& info(Reason reason) {
  return reason == Reason::None ? kNoReason : kReasons[static_cast<std::size_t>(reason)];
}

}  // namespace lokadb::route
