#include "net/dns.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "base/log.h"

namespace lokadb {
namespace {

// More addresses than this of one name are ignored: nobody needs them, and comparing them is quadratic.
constexpr std::size_t kMaxAddresses = 100;

bool contains(const std::vector<SocketAddress>& addresses, const SocketAddress& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

std::vector<SocketAddress> addresses_of(const ares_addrinfo* found) {
  std::vector<SocketAddress> out;
  for (auto* node = found != nullptr ? found->nodes : nullptr; node != nullptr; node = node->ai_next) {
    if (out.size() == kMaxAddresses) break;
    SocketAddress address = socket_address(node->ai_addr, node->ai_addrlen);
    address.set_port(0);
    if (!address.empty() && !contains(out, address)) out.push_back(address);
  }
  return out;
}

constexpr int kInternetClass = 1, kSoaType = 6;

// What stands behind the first dot; empty: no zone to ask about.
std::string_view zone_of(std::string_view name) {
  std::size_t dot = name.find('.');
  std::string_view zone = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  return zone == "." ? std::string_view() : zone;
}

// c-ares wants this once in a process, before its first channel.
int init_library() {
  static std::once_flag once;
  static int status = ARES_SUCCESS;
  std::call_once(once, [] { status = ares_library_init(ARES_LIB_INIT_ALL); });
  return status;
}

}  // namespace

Result<std::unique_ptr<DnsResolver>> DnsResolver::create(EventLoop& loop, DnsSettings settings) {
  std::unique_ptr<DnsResolver> resolver(new DnsResolver(loop, std::move(settings)));
  int status = init_library();
  if (status == ARES_SUCCESS) status = resolver->open_channel();
  if (status == ARES_SUCCESS && (!resolver->timer_ || !resolver->deliver_event_)) status = ARES_ENOMEM;
  if (status != ARES_SUCCESS) return fatal(std::string("DNS setup failed: ") + ares_strerror(status));
  return resolver;
}

DnsResolver::DnsResolver(EventLoop& loop, DnsSettings settings)
    : loop_(loop), settings_(std::move(settings)), ready_(std::make_shared<std::deque<Ready>>()) {
  auto on_deliver = [](evutil_socket_t, short, void* self) { static_cast<DnsResolver*>(self)->deliver(); };
  auto on_timer = [](evutil_socket_t, short, void* self) {
    static_cast<DnsResolver*>(self)->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  };
  deliver_event_.reset(evtimer_new(loop.base(), on_deliver, this));
  timer_.reset(evtimer_new(loop.base(), on_timer, this));
}

DnsResolver::~DnsResolver() {
  is_closing_ = true;
  ready_->clear();
  if (channel_ != nullptr) ares_destroy(channel_);  // calls back for each lookup under way
  while (idle_.pop_front() != nullptr) continue;    // the names go with the map
}

int DnsResolver::open_channel() {
  ares_options options{};
  int mask = ARES_OPT_SOCK_STATE_CB;
  options.sock_state_cb_data = this;
  options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
    static_cast<DnsResolver*>(self)->watch_socket(fd, readable != 0, writable != 0);
  };
  if (!settings_.resolv_conf.empty()) {
    options.resolvconf_path = settings_.resolv_conf.data();  // c-ares makes its own copy
    mask |= ARES_OPT_RESOLVCONF;
  }
  int status = ares_init_options(&channel_, &options, mask);
  if (status != ARES_SUCCESS || settings_.servers.empty()) return status;
  return ares_set_servers_ports_csv(channel_, settings_.servers.c_str());
}

DnsTicket DnsResolver::resolve(const std::string& name, int port, DnsCallback callback) {
  auto request = std::make_shared<Request>(Request{port, std::move(callback)});
  DnsTicket ticket(request);
  if (auto literal = parse_address(name, port)) {
    make_ready(std::move(request), {{*literal}, {}});
    return ticket;
  }
  Name* entry = find_or_add(name);
  if (entry == nullptr) {
    make_ready(std::move(request), {{}, "too many DNS lookups"});
  } else if (!entry->is_in_lookup && now_us() < entry->expires_us) {
    hand_out(*entry, std::move(request));
  } else {
    entry->waiting.push_back(std::move(request));
    if (!entry->is_in_lookup) start_lookup(*entry);
  }
  return ticket;
}

// nullptr: the cache is full of names being looked up. A new name is on idle_, expired.
DnsResolver::Name* DnsResolver::find_or_add(const std::string& name) {
  auto found = names_.find(name);
  if (found != names_.end()) return &found->second;
  if (names_.size() >= settings_.max_names) {
    Name* oldest = idle_.pop_front();
    if (oldest == nullptr) return nullptr;
    names_.erase(names_.find(oldest->name));
  }
  Name& added = names_[name];
  added.name = name;
  idle_.push_back(&added);
  return &added;
}

void DnsResolver::start_lookup(Name& name) {
  name.is_in_lookup = true;
  idle_.remove(&name);
  ++lookups_;
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  auto on_answer = [](void* arg, int status, int, ares_addrinfo* result) {
    std::unique_ptr<Lookup> lookup(static_cast<Lookup*>(arg));
    std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> found(result, &ares_freeaddrinfo);
    if (!lookup->resolver->is_closing_) lookup->resolver->finish_lookup(*lookup->name, status, found.get());
  };
  // May answer at once (/etc/hosts, names c-ares refuses): so nothing about this lookup is touched after it.
  ares_getaddrinfo(channel_, name.name.c_str(), nullptr, &hints, on_answer, new Lookup{this, &name});
  set_timer();
}

void DnsResolver::finish_lookup(Name& name, int status, const ares_addrinfo* found) {
  auto fresh = addresses_of(found);
  if (status == ARES_SUCCESS && fresh.empty()) status = ARES_ENODATA;
  if (status == ARES_SUCCESS) {
    name.error.clear();
    replace_addresses(name, std::move(fresh));
  } else {
    // The addresses stay, to be compared with those of the next lookup that succeeds.
    name.error = ares_strerror(status);
    log_line(LogLevel::Warning, "DNS lookup failed: %s: result=%d", name.name.c_str(), status);
  }
  name.expires_us = now_us() + (name.error.empty() ? settings_.max_ttl : settings_.nxdomain_ttl).count();
  name.is_in_lookup = false;
  idle_.push_back(&name);
  --lookups_;
  for (auto& request : std::exchange(name.waiting, {})) hand_out(name, std::move(request));
}

void DnsResolver::replace_addresses(Name& name, std::vector<SocketAddress> fresh) {
  auto old = std::exchange(name.addresses, std::move(fresh));
  if (!lost_) return;
  for (const auto& address : old) {
    if (!contains(name.addresses, address)) {
      auto report = [lost = lost_, text = name.name, address](const DnsAnswer&) { lost(text, address); };
      make_ready(std::make_shared<Request>(Request{0, std::move(report)}), {});
    }
  }
}

void DnsResolver::hand_out(Name& name, std::shared_ptr<Request> request) {
  if (!request->callback) return;
  if (!name.error.empty()) return make_ready(std::move(request), {{}, name.error});
  DnsAnswer answer{name.addresses, {}};
  for (auto& address : answer.addresses) address.set_port(request->port);
  std::rotate(name.addresses.begin(), name.addresses.begin() + 1, name.addresses.end());
  make_ready(std::move(request), std::move(answer));
}

void DnsResolver::make_ready(std::shared_ptr<Request> request, DnsAnswer answer) {
  ready_->push_back({std::move(request), std::move(answer)});
  timeval now{0, 0};
  evtimer_add(deliver_event_.get(), &now);
}

// Gives out what is ready now; what the callbacks make ready comes in the loop's next round. Any callback may destroy
// the resolver, which empties the queue: members are not touched in the loop.
void DnsResolver::deliver() {
  auto queue = ready_;
  EventLoop& loop = loop_;
  for (std::size_t n = queue->size(); n > 0 && !queue->empty(); --n) {
    Ready ready = std::move(queue->front());
    queue->pop_front();
    auto callback = std::exchange(ready.request->callback, nullptr);
    if (!callback) continue;
    try {
      callback(ready.answer);
    } catch (const std::exception& e) {  // must not pass through libevent
      log_line(LogLevel::Error, "exception in a DNS callback: %s", e.what());
    }
  }
  loop.end_turn();
}

void DnsResolver::set_ttls(Micros max_ttl, Micros nxdomain_ttl) {
  settings_.max_ttl = max_ttl;
  settings_.nxdomain_ttl = nxdomain_ttl;
}

void DnsResolver::on_lost_address(std::function<void(const std::string& name, const SocketAddress&)> callback) {
  lost_ = std::move(callback);
}

void DnsResolver::check_zones() {
  std::set<std::string_view> wanted;
  for (const auto& [text, name] : names_)
    if (auto zone = zone_of(text); !zone.empty()) wanted.insert(zone);
  std::erase_if(zones_,
                [&wanted](const auto& entry) { return !entry.second.is_in_query && !wanted.contains(entry.first); });
  for (std::string_view zone : wanted) {
    Zone& entry = zones_[std::string(zone)];
    if (std::exchange(entry.is_in_query, true)) continue;
    auto on_answer = [](void* arg, int status, int, unsigned char* answer, int size) {
      std::unique_ptr<ZoneQuery> query(static_cast<ZoneQuery*>(arg));
      if (!query->resolver->is_closing_) query->resolver->zone_answered(query->name, status, answer, size);
    };
    ares_query(channel_, std::string(zone).c_str(), kInternetClass, kSoaType, on_answer,
               new ZoneQuery{this, std::string(zone)});
  }
  set_timer();
}

void DnsResolver::zone_answered(const std::string& text, int status, const unsigned char* answer, int size) {
  Zone& zone = zones_[text];
  zone.is_in_query = false;
  ares_soa_reply* soa = nullptr;
  if (status == ARES_SUCCESS) status = ares_parse_soa_reply(answer, size, &soa);
  if (status != ARES_SUCCESS) return;  // asked again next time
  std::uint32_t serial = soa->serial;
  ares_free_data(soa);
  std::uint32_t before = std::exchange(zone.serial, serial);
  if (before == 0 || before == serial) return;
  log_line(LogLevel::Log, "zone '%s' serial changed: old=%u new=%u", text.c_str(), before, serial);
  std::vector<Name*> stale;
  for (auto& [name_text, name] : names_)
    if (zone_of(name_text) == text && !name.is_in_lookup) stale.push_back(&name);
  for (Name* name : stale) start_lookup(*name);
}

std::vector<DnsResolver::ZoneEntry> DnsResolver::zones() const {
  std::vector<ZoneEntry> out;
  for (const auto& [text, zone] : zones_) {
    auto is_in_it = [&zone_text = text](const auto& entry) { return zone_of(entry.first) == zone_text; };
    auto count = std::count_if(names_.begin(), names_.end(), is_in_it);
    out.push_back({text, zone.serial, static_cast<std::size_t>(count)});
  }
  return out;
}

std::vector<DnsResolver::Entry> DnsResolver::entries() const {
  std::vector<Entry> out;
  out.reserve(names_.size());
  std::int64_t now = now_us();
  for (const auto& [text, name] : names_) {
    std::int64_t left = name.is_in_lookup ? 0 : std::max<std::int64_t>(name.expires_us - now, 0) / 1'000'000;
    out.push_back({text, left, name.error.empty() ? name.addresses : std::vector<SocketAddress>()});
  }
  return out;
}

// c-ares tells what it wants to know about one of its sockets; nothing: it is about to close it.
void DnsResolver::watch_socket(ares_socket_t fd, bool readable, bool writable) {
  sockets_.erase(fd);
  if (!readable && !writable) return;
  auto on_event = [](evutil_socket_t socket, short what, void* self) {
    static_cast<DnsResolver*>(self)->process((what & EV_READ) != 0 ? socket : ARES_SOCKET_BAD,
                                             (what & EV_WRITE) != 0 ? socket : ARES_SOCKET_BAD);
  };
  int flags = EV_PERSIST | (readable ? EV_READ : 0) | (writable ? EV_WRITE : 0);
  EventPtr watch(event_new(loop_.base(), fd, static_cast<short>(flags), on_event, this));
  // Without a watch the lookup runs into c-ares's timeout and fails like one whose answer was lost.
  if (!watch || event_add(watch.get(), nullptr) != 0) return;
  sockets_[fd] = std::move(watch);
}

void DnsResolver::process(ares_socket_t readable, ares_socket_t writable) {
  ares_process_fd(channel_, readable, writable);
  set_timer();
}

void DnsResolver::set_timer() {
  timeval wait;
  if (ares_timeout(channel_, nullptr, &wait) == nullptr) {
    evtimer_del(timer_.get());
  } else {
    evtimer_add(timer_.get(), &wait);
  }
}

}  // namespace lokadb
