// The second step of a decision: where this very statement goes, with its values, the organization that the application
// has named, and what the session allows. Pure and quick; the same function serves proxy, explain and check (SPEC D2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "route/analysis.h"
#include "route/reasons.h"

namespace lokadb::route {

// A literal of the text: what stands between the quotes, escapes resolved; digits of a number without its sign.
struct Literal {
  enum class Kind : std::uint8_t { Number, String, Other } kind = Kind::Other;
  std::string_view text;
};

// Borrowed for the call.
struct Values {
  std::span<const Literal> literals;
  std::span<const catalog::Parameter> parameters;  // [0] is $1
};

// What is known of keys. Answers are remembered by whoever implements it; find() must not block.
class KeySource {
 public:
  enum class Answer : std::uint8_t { NotAsked, Nobody, Found };
  struct Found {
    Answer answer = Answer::NotAsked;
    std::string_view organization;  // canonical; valid until decide returns
  };
  virtual Found find(const catalog::Table& table, std::string_view key) const = 0;

 protected:
  ~KeySource() = default;
};

struct Session {
  // Unusable: what was named cannot be an organization.
  enum class Naming : std::uint8_t { Nothing, One, All, Unusable } naming = Naming::Nothing;
  std::string_view named;              // Naming::One: canonical, not reserved
  Reason not_eligible = Reason::None;  // why this session or its transaction has no direct path now
  bool catalog_is_stale = false;
  bool is_rejecting = false;   // [router] policy = reject
  bool is_allowed = false;     // the statement is in the list allow, or the role in all_roles
  bool logs_mismatch = false;  // [tenant] mismatch = log
  bool has_utf8 = true;        // client_encoding is UTF8: texts arrive as the server keeps them
  bool sends_writes = false;   // direct writes are possible here
  bool sends_locking_reads = false;
  bool sends_user_types = false;            // numbers of types of one's own are translated
  std::optional<catalog::Profile> profile;  // of the organization, instead of its own (an estimate)
};

enum class Path : std::uint8_t {
  Cloud,
  Direct,
  Refuse,
  LookUp,  // ask for `look_ups`, then decide again
};

struct Key {
  std::uint16_t table = 0;  // number in the catalog
  std::string text;         // canonical
  bool operator==(const Key&) const = default;
};

struct Verdict {
  Path path = Path::Cloud;
  Reason reason = Reason::None;
  Access access = Access::Read;
  // Whose rows: for Cloud as well, where it is the tenant to set and the organization to enter.
  enum class Whose : std::uint8_t {
    NoTables,  // touches nothing: no tenant needed
    Unknown,   // or several: tenant ''
    Nobody,    // the key belongs to no organization: tenant nobody()
    One,
    All,  // the application said '*'
  } whose = Whose::Unknown;
  std::string organization;     // Whose::One: canonical
  std::int64_t generation = 0;  // that the decision was made under; 0: never moved
  catalog::Profile profile = catalog::Profile::Local;
  // How it is known. Condition: by a condition on the tenant column or a new row's; Key: through refs.
  enum class Known : std::uint8_t { Not, Named, Condition, Key } known = Known::Not;
  std::vector<Key> keys;        // that were looked up and found: lokadb.enter's p_keys
  std::vector<Key> look_ups;    // Path::LookUp
  bool use_local_part = false;  // write Analysis::local_parts as the local part
  bool is_mismatch = false;     // it names another organization, which is only logged: never direct
  // An organization that the statement names by itself, if the application has named one, too: the other one, if there
  // is another. Empty: it names none.
  std::string about;
  std::string_view sqlstate;  // Path::Refuse
};

Verdict decide(const Analysis& analysis, const Values& values, const Session& session, const KeySource& keys);

// The message of a refusal: what and why, without names of other organizations.
std::string refusal_text(const Analysis& analysis, const Verdict& verdict);
// {"public.documents": ["1", "2"]}, the argument p_keys of lokadb.enter.
std::string keys_argument(const catalog::Catalog& catalog, std::span<const Key> keys);

}  // namespace lokadb::route
