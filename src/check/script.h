// Cases for a plugin, as text: what lokadb-plugin-check reads. A line is a keyword and the rest; "#" begins a comment.
//
//   batch WORDS          begins a case, with a name for messages
//   database, role, encoding WORD
//   setting NAME VALUE   a server setting as the session has it
//   status I|T|E         of the transaction
//   flush                the batch ends in Flush, not in Sync
//   partial              it is larger than what the proxy gathers
//   simple SQL           a statement of the simple protocol; so are
//   bind SQL, parse SQL  those of the extended one, and
//   other                what has no text
//   call                 a FunctionCall
//   known NUMBER         the statement's number as a known one
//   param TYPE text VALUE, param TYPE binary HEX, param TYPE null
//                        the next parameter of the statement; TYPE is an OID
//   answer               the answer to the next step that the plugin asks for (without one: no rows), made of
//   row CELL|CELL        rows; \N is NULL
//   expect VERDICT       "no opinion", "cloud [ORGANIZATION]", "direct ORGANIZATION" or "refuse SQLSTATE", and behind
//   it
//                        "because REASON" if that matters
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plugin/batch.h"

namespace lokadb::check {

struct Statement {
  std::uint32_t form = LOKADB_SIMPLE;
  std::string text;
  std::uint64_t known_as = 0;
  struct Parameter {
    std::uint32_t type = 0;
    bool is_null = false, is_binary = false;
    std::string value;
  };
  std::vector<Parameter> parameters;
};

using Rows = std::vector<std::vector<std::pair<bool, std::string>>>;  // as in BatchStep

struct Case {
  std::string name;
  std::string database = "app", role = "app", encoding = "UTF8";
  std::map<std::string, std::string> settings;
  char status = 'I';
  bool ends_in_flush = false, is_whole = true;
  std::vector<Statement> statements;
  std::vector<Rows> answers;
  std::string expected;  // empty: anything that is sound
};

// The error names the line.
Result<std::vector<Case>> parse_script(std::string_view text);

// Cases that every plugin must live with.
std::vector<Case> built_in_cases();

}  // namespace lokadb::check
