// Host names to addresses, without blocking the event loop: c-ares for /etc/hosts and DNS, and a cache in front of it.
//
// One resolver serves one event loop and belongs to that loop's thread; it has no locks. Every answer comes from the
// loop, never from inside resolve(): a caller may set itself up after the call and may destroy itself in its callback.
#pragma once

#include <ares.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/list.h"
#include "base/result.h"
#include "net/address.h"
#include "net/loop.h"

namespace lokadb {

// Exactly one of the two is empty.
struct DnsAnswer {
  std::vector<SocketAddress> addresses;  // no two alike
  std::string error;                     // why there is none, in c-ares's words

  explicit operator bool() const { return error.empty(); }
};

using DnsCallback = std::function<void(const DnsAnswer&)>;

// The right to be called back. Once it is destroyed (or assigned to) the callback is not called any more, and what the
// callback holds is freed. It may outlive the resolver, be destroyed in the callback, and be moved.
class DnsTicket {
 public:
  DnsTicket() = default;
  ~DnsTicket() { cancel(); }
  DnsTicket(DnsTicket&&) = default;
  DnsTicket& operator=(DnsTicket&& other) noexcept {
    if (this != &other) {
      cancel();
      request_ = std::move(other.request_);
    }
    return *this;
  }

  void cancel() {
    if (auto request = std::move(request_)) request->callback = nullptr;
  }
  bool is_waiting() const { return request_ && request_->callback; }

 private:
  friend class DnsResolver;
  struct Request {
    int port;
    DnsCallback callback;  // empty: called already, or cancelled
  };
  explicit DnsTicket(std::shared_ptr<Request> request) : request_(std::move(request)) {}
  std::shared_ptr<Request> request_;
};

struct DnsSettings {
  Micros max_ttl{15'000'000};       // how long addresses are kept; the TTL in the answer is ignored
  Micros nxdomain_ttl{15'000'000};  // how long a failure is kept, whatever its kind
  std::string resolv_conf;          // empty: the system's
  std::string servers;              // "ADDRESS:PORT,..." to ask instead of resolv.conf's name servers; empty: those
  std::size_t max_names = 10'000;   // beyond it the name answered longest ago is forgotten
};

class DnsResolver {
 public:
  // One line of SHOW DNS_HOSTS.
  struct Entry {
    std::string name;
    std::int64_t seconds_left;             // 0: expired, or the first lookup is under way
    std::vector<SocketAddress> addresses;  // port 0
  };

  // errors: c-ares cannot be set up (no memory, resolv.conf not readable). `loop` outlives the resolver.
  static Result<std::unique_ptr<DnsResolver>> create(EventLoop& loop, DnsSettings settings);
  // Requests not answered yet are dropped without a call. Allowed from a callback too.
  ~DnsResolver();
  DnsResolver(const DnsResolver&) = delete;
  DnsResolver& operator=(const DnsResolver&) = delete;

  // Asks for the addresses of a name, both families, with `port` in each. IP literals, paths and '@' names of unix
  // sockets are answered too, without a lookup. Where a name has several addresses, each answer begins with another
  // one, so that callers who take the first spread over all. Requests for a name whose lookup is under way wait for
  // that one. A failed lookup is logged once. Keep the ticket as long as the answer is wanted.
  [[nodiscard]] DnsTicket resolve(const std::string& name, int port, DnsCallback callback);

  // For answers that come from now on.
  void set_ttls(Micros max_ttl, Micros nxdomain_ttl);

  // Called, from the loop as well, when a name that had an address (port 0) was looked up again, with success, and has
  // it no more; before the answers of that lookup are given out.
  void on_lost_address(std::function<void(const std::string& name, const SocketAddress&)> callback);

  // One line of SHOW DNS_ZONES.
  struct ZoneEntry {
    std::string name;
    std::uint32_t serial;  // 0: not known
    std::size_t names;     // in the cache
  };
  // Asks for the serial numbers of the zones that the names in the cache are in (what stands behind their first dot).
  // Where one has changed since the last time, all names of the zone are looked up anew.
  void check_zones();
  std::vector<ZoneEntry> zones() const;  // those asked about, sorted by name

  std::vector<Entry> entries() const;  // sorted by name
  std::size_t name_count() const { return names_.size(); }
  std::size_t lookup_count() const { return lookups_; }  // under way

 private:
  using Request = DnsTicket::Request;

  // A name known to the cache: either in lookup, or on idle_ with an answer that may have expired.
  struct Name : ListHook<> {
    std::string name;
    std::vector<SocketAddress> addresses;  // of the last lookup that found some, port 0; the next to hand out first
    std::string error;                     // of the last lookup; empty: it found addresses
    std::int64_t expires_us = 0;
    bool is_in_lookup = false;
    std::vector<std::shared_ptr<Request>> waiting;
  };
  struct Zone {
    std::uint32_t serial = 0;  // 0: not known yet
    bool is_in_query = false;
  };
  struct ZoneQuery {
    DnsResolver* resolver;
    std::string name;
  };
  struct Ready {
    std::shared_ptr<Request> request;
    DnsAnswer answer;
  };
  // What c-ares gives back to us with an answer.
  struct Lookup {
    DnsResolver* resolver;
    Name* name;
  };

  DnsResolver(EventLoop& loop, DnsSettings settings);
  int open_channel();
  Name* find_or_add(const std::string& name);
  void start_lookup(Name& name);
  void finish_lookup(Name& name, int status, const ares_addrinfo* found);
  void zone_answered(const std::string& name, int status, const unsigned char* answer, int size);
  void replace_addresses(Name& name, std::vector<SocketAddress> fresh);
  void hand_out(Name& name, std::shared_ptr<Request> request);
  void make_ready(std::shared_ptr<Request> request, DnsAnswer answer);
  void deliver();
  void watch_socket(ares_socket_t fd, bool readable, bool writable);
  void process(ares_socket_t readable, ares_socket_t writable);
  void set_timer();

  EventLoop& loop_;
  DnsSettings settings_;
  std::function<void(const std::string&, const SocketAddress&)> lost_;
  std::map<std::string, Name> names_;
  std::map<std::string, Zone> zones_;
  List<Name> idle_;  // oldest answer first
  std::size_t lookups_ = 0;
  std::shared_ptr<std::deque<Ready>> ready_;  // shared with deliver(), which may see the resolver go
  EventPtr deliver_event_;
  EventPtr timer_;
  std::unordered_map<ares_socket_t, EventPtr> sockets_;
  ares_channel channel_ = nullptr;
  bool is_closing_ = false;
};

}  // namespace lokadb
