// SASLprep (RFC 4013): the form of a password that SCRAM works with, so that a password typed on another keyboard or
// system (precomposed or not, full-width, with a no-break space) is the same password.
#pragma once

#include <string>
#include <string_view>

namespace lokadb {

// As PostgreSQL and libpq do: ASCII passwords, and those that SASLprep cannot take (not UTF-8, prohibited or unassigned
// characters, mixed directions, nothing left), are used byte for byte. So are passwords longer than 1 kB. Any thread.
std::string saslprep(std::string_view password);

}  // namespace lokadb
