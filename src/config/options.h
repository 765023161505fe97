// The options of [pgbouncer], each declared once: one row feeds the parser, SET, SHOW CONFIG, and whoever prints a
// manual page, --help or a sample file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"

namespace lokadb {

// When a changed value counts. AtStart: a later change is accepted and has no effect until a restart.
enum class Applies { OnReload, AtStart };

// Where the value lives; its type says how the text is read and shown (bool: 0 or any other C integer).
using OptionMember =
    std::variant<bool Options::*, int Options::*, std::uint32_t Options::*, std::optional<int> Options::*,
                 Micros Options::*, std::string Options::*, OptionalText Options::*, TextList Options::*,
                 PoolMode Options::*, AuthType Options::*, TlsMode Options::*>;

// Lines for the log (level ERROR), in order; collected so that parsing stays free of side effects.
using Faults = std::vector<std::string>;

struct OptionRow {
  std::string_view key;
  OptionMember member;
  const char* fallback;  // default as text, as SHOW CONFIG prints it; nullptr: none, shown as NULL
  Applies applies;
  std::string_view help;  // one sentence; a time is in seconds where the type is Micros
  // More than the type can say. False: refused; it may add a line of its own to the faults.
  bool (*check)(std::string_view value, Faults& faults) = nullptr;
  std::string_view unit = {};  // of an integer, where it has one; times (Micros) are in seconds
};

// In the order of SHOW CONFIG; static storage.
std::span<const OptionRow> option_rows();

// nullptr: no such key. Keys are case-sensitive.
const OptionRow* find_option(std::string_view key);

// Every default of the table.
Options default_options();

// What a [pgbouncer] header does: options that have a default get it. On a reload those of AtStart keep their value.
void reset_options(Options& options, bool is_reload);

// Reads `value` into the row's member. False: not a legal value, `options` is unchanged; a check may have added a
// line to `faults`, the caller adds the one that names the place.
bool set_option(Options& options, const OptionRow& row, std::string_view value, Faults& faults);

// The value as SHOW CONFIG prints it; nullopt: NULL.
OptionalText option_text(const Options& options, const OptionRow& row);

// The word for the row's type in manuals: "boolean", "integer", "seconds", "text", "list", or the words of an enum
// separated by commas.
std::string option_type_text(const OptionRow& row);

// The name of the database that is always the admin console.
inline constexpr std::string_view kConsoleDatabase = "pgbouncer";
inline constexpr std::string_view kReservedAuthDbname =
    "cannot use the reserved \"pgbouncer\" database as an auth_dbname";

}  // namespace lokadb
