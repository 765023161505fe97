// What can be told of a text that is not read: in an encoding where a byte of a character may look like a letter or
// quote, or of a grammar that is not known here. By its bytes alone, so it errs, on the side that each says.
#pragma once

#include <string_view>

namespace lokadb::router {

// Runs a query perhaps; true when in doubt. False where nothing may stand in front of it: what cannot run in a
// transaction, and what sets the modes of one.
bool may_read_tables(std::string_view text);
// The same where nothing is known of the database: false only for commands of sessions and transactions.
bool may_touch_tables(std::string_view text);
// Of one statement: its first word may be that of the end of a transaction.
bool may_end_transaction(std::string_view text);
// Something is behind the end of a transaction; true when in doubt.
bool goes_on_behind_end(std::string_view text);
// Several statements, the first of which seems to set the modes of its transaction.
bool begins_with_modes(std::string_view text);
// EXECUTE, CREATE TABLE ... AS, CREATE and REFRESH MATERIALIZED VIEW; of a text that can be read.
bool runs_query(std::string_view text);

}  // namespace lokadb::router
