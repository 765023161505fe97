// The auth_hba_file: which clients may log in where, as whom, and how they have to prove it.
//
// Syntax and meaning are PgBouncer's (a part of PostgreSQL's), and the method pam: no names of hosts, no samehost,
// samenet or samerole, no +group, no patterns. A line that is not understood is left out, with a warning; the rest
// holds.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/text.h"
#include "config/ident.h"
#include "config/ini_reader.h"
#include "net/address.h"

namespace lokadb {

enum class HbaTransport { Local, Host, HostSsl, HostNoSsl };
enum class HbaMethod { Trust, Reject, Md5, Password, Scram, Peer, Cert, Ldap, Pam };

// The word of the file ("trust", "scram-sha-256" ...).
std::string_view name_of(HbaMethod);

// A list of databases or users.
struct HbaNames {
  bool is_all = false;
  bool is_same_user = false;     // databases: the one called like the user
  bool has_replication = false;  // databases: physical replication, which is of no database
  std::unordered_set<std::string, TextHash, std::equal_to<>> names;

  bool contains(std::string_view name) const { return is_all || names.contains(name); }
};

struct HbaNetwork {
  int family = 0;  // AF_INET or AF_INET6; 0: every address
  std::array<unsigned char, 16> address{}, mask{};

  // Bits are set where the mask has none: no address is in it.
  bool is_empty() const;
  bool contains(const SocketAddress& client) const;
};

struct HbaRule {
  int line = 0;
  HbaTransport transport = HbaTransport::Local;
  HbaNames databases, users;
  HbaNetwork network;  // not for Local
  HbaMethod method = HbaMethod::Reject;
  std::string map_name;                 // empty: none; peer and cert only
  std::shared_ptr<const IdentMap> map;  // null: none
  std::string ldap_options;             // as they stand in the file; parse_ldap_options() understands them
  std::string pam_service;              // empty: the usual one
};

// Who asks to be let in.
struct HbaLogin {
  SocketAddress address;  // of the client
  bool has_tls = false;
  bool is_physical_replication = false;
  std::string_view database, user;
};

struct HbaRules {
  std::vector<HbaRule> rules;

  // The first rule for this login; null: none.
  const HbaRule* find(const HbaLogin& login) const;
};

struct HbaText {
  HbaRules rules;
  Faults warnings;  // lines for the log
};

// `path` is the file's own: an @file of a list that is not absolute is looked for beside it, through `source`.
// A map= that `maps` has not makes a line one that is left out. Pure but for `source`; any thread.
HbaText parse_hba(std::string_view text, const std::string& path, const IdentMaps& maps, const IniSource& source);

}  // namespace lokadb
