// HBA and ident files of any bytes. An @file finds the same text again, so that nesting is met too.
#include "config/hba.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace lokadb;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  IniSource source = [&text](const std::string& path, std::string& why) -> std::optional<std::string> {
    if (path != "missing") return text;
    why = "No such file or directory";
    return std::nullopt;
  };
  auto ident = parse_ident(text);
  auto hba = parse_hba(text, "fuzz.conf", ident.maps, source);
  for (const HbaRule& rule : hba.rules.rules) {
    if (rule.map != nullptr && rule.map->empty()) std::abort();
    if (rule.map == nullptr && !rule.map_name.empty()) std::abort();
    if (rule.transport == HbaTransport::Local && rule.network.family != 0) std::abort();
  }
  // Whoever is let in has a rule for that kind of connection.
  HbaLogin login;
  login.database = "d";
  login.user = "u";
  for (auto address : {*unix_address("/x"), *parse_ip("127.0.0.1", 1), *parse_ip("::1", 1)}) {
    login.address = address;
    const HbaRule* rule = hba.rules.find(login);
    if (rule == nullptr) continue;
    if ((rule->transport == HbaTransport::Local) != address.is_unix()) std::abort();
    if (rule->transport == HbaTransport::HostSsl) std::abort();
  }
  return 0;
}
