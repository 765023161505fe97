// SELECT pg_cancel_backend(n) and pg_terminate_backend(n), with which drivers stop statements of connections that they
// know by the number of BackendKeyData (knex does). That number is ours, so that such a call is carried out here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace lokadb {

struct BackendCall {
  bool terminates = false;
  std::optional<std::uint32_t> number;  // none: parameter $1
};

// The first look at a statement.
bool may_be_backend_call(std::string_view sql);
// If `sql` is such a statement and nothing else.
std::optional<BackendCall> backend_call(std::string_view sql);

// What is sent in its place: one that says that it was done; for $1, one that does so if the parameter is negative,
// which no process has, and calls the function else.
std::string done_instead(const BackendCall& call);

// The number bound as the only parameter of a Bind, whose body this is; nullopt: none, or not in a usual form.
std::optional<std::uint32_t> bound_number(Bytes body);
// The body with the number negative.
std::string with_negative_number(Bytes body);

}  // namespace lokadb
