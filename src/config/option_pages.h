// The option table as text for people: the list in the manual page, and the sample file.
#pragma once

#include <string>

namespace lokadb {

// The options of [pgbouncer] as the body of a section of a manual page (roff, man macros), in the table's order.
std::string options_as_man_text();

// A [pgbouncer] section in which every option is commented out and has its default. Comments begin with "; ", options
// with ';' and their name, so that taking away the ';' of the latter leaves a file that says what holds anyway.
std::string options_as_ini_text();

}  // namespace lokadb
