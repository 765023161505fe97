#include "net/listener.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>

#include "config/support.h"
#include "net/socket.h"
#include "stream_fixture.h"

namespace lokadb {
namespace {

using namespace stream_test;

Fd client_of(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd, address.data(), address.length) != 0) fd.reset();
  return fd;
}

struct ListenerFixture {
  static constexpr int kPort = 6543;
  test::Sandbox sandbox;
  EventLoop loop{4096};
  ListenerSettings settings;
  std::vector<Fd> accepted;
  std::vector<SocketAddress> peers;
  std::string folder = sandbox.path("sockets"), path = folder + "/.s.PGSQL.6543";

  ListenerFixture() {
    std::filesystem::create_directory(folder);
    settings.defer_accept = false;  // else a client that says nothing is not seen
  }
  std::unique_ptr<Listener> listener() {
    return std::make_unique<Listener>(loop, settings, [this](int fd, const SocketAddress& peer) {
      accepted.emplace_back(fd);
      peers.push_back(peer);
    });
  }
  bool is_accepting(const SocketAddress& address) {
    std::size_t before = accepted.size();
    Fd client = client_of(address);
    return client >= 0 && run_until({&loop}, [&] { return accepted.size() > before; });
  }
  static std::string reason(const Result<Done>& result) { return result ? "it works" : result.error().log_text(); }
};

// A port of 127.0.0.1 that was free a moment ago.
SocketAddress free_address() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto any = parse_ip("127.0.0.1", 0);
  BOOST_REQUIRE(bind(fd, any->data(), any->length) == 0);
  return local_address(fd);
}

BOOST_FIXTURE_TEST_SUITE(net_listener, ListenerFixture)

BOOST_AUTO_TEST_CASE(clients_of_a_unix_socket_are_accepted) {
  auto l = listener();
  BOOST_TEST(l->empty());
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  BOOST_TEST(!l->empty());
  BOOST_REQUIRE(l->descriptions().size() == 1u);
  BOOST_TEST(l->descriptions()[0] == "unix:" + path);
  BOOST_REQUIRE(is_accepting(*unix_address(path)));
  BOOST_TEST(peers[0].is_unix());
  BOOST_TEST(to_text(peers[0]) == "unix");
  BOOST_TEST((fcntl(accepted[0], F_GETFL) & O_NONBLOCK) != 0);
  BOOST_TEST((fcntl(accepted[0], F_GETFD) & FD_CLOEXEC) != 0);
  BOOST_TEST(unix_peer(accepted[0]).pid == getpid());
  BOOST_TEST(unix_peer(accepted[0]).uid == static_cast<int>(getuid()));
}

BOOST_AUTO_TEST_CASE(the_socket_file_goes_with_its_listener) {
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  BOOST_TEST(std::filesystem::is_socket(path));
  l.reset();
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(a_socket_that_listens_already_is_taken_over) {
  auto address = free_address();
  int tcp = socket(AF_INET, SOCK_STREAM, 0), unix = socket(AF_UNIX, SOCK_STREAM, 0);
  BOOST_REQUIRE(bind(tcp, address.data(), address.length) == 0);
  BOOST_REQUIRE(bind(unix, unix_address(path)->data(), unix_address(path)->length) == 0);
  BOOST_REQUIRE(::listen(tcp, 1) == 0 && ::listen(unix, 1) == 0);
  auto l = listener();
  BOOST_TEST(reason(l->adopt(tcp)) == "it works");
  BOOST_TEST(reason(l->adopt(unix)) == "it works");
  BOOST_TEST(l->descriptions() == (std::vector{to_text(address), "unix:" + path}), boost::test_tools::per_element());
  BOOST_TEST((fcntl(tcp, F_GETFL) & O_NONBLOCK) != 0);
  BOOST_TEST((fcntl(tcp, F_GETFD) & FD_CLOEXEC) != 0);
  BOOST_TEST(is_accepting(address));
  BOOST_TEST(is_accepting(*unix_address(path)));
  l->close_tcp();
  BOOST_TEST(client_of(address) == -1);
  l.reset();
  BOOST_TEST(std::filesystem::is_socket(path));  // it was somebody else who made it
}

BOOST_AUTO_TEST_CASE(what_does_not_listen_is_not_taken_over) {
  auto l = listener();
  BOOST_TEST(reason(l->adopt(socket(AF_INET, SOCK_STREAM, 0))) == "not a stream socket that listens");
  BOOST_TEST(reason(l->adopt(socket(AF_INET, SOCK_DGRAM, 0))) == "not a stream socket that listens");
  BOOST_TEST(reason(l->adopt(open("/dev/null", O_RDONLY))) == "getsockopt(): Socket operation on non-socket");
  BOOST_TEST(l->empty());
}

BOOST_AUTO_TEST_CASE(a_stale_socket_file_is_replaced) {
  {
    Fd crashed(socket(AF_UNIX, SOCK_STREAM, 0));
    auto address = unix_address(path);
    BOOST_REQUIRE(bind(crashed, address->data(), address->length) == 0);
  }
  BOOST_TEST(client_of(*unix_address(path)) == -1);
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  BOOST_TEST(is_accepting(*unix_address(path)));
}

BOOST_AUTO_TEST_CASE(another_kind_of_file_is_not_touched) {
  sandbox.write("sockets/.s.PGSQL.6543", "precious");
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "bind(): Address already in use");
  BOOST_TEST(std::filesystem::file_size(path) == 8u);
  BOOST_TEST(l->empty());
}

BOOST_AUTO_TEST_CASE(the_lock_of_a_postgresql_is_respected) {
  sandbox.write("sockets/.s.PGSQL.6543.lock", "1234\n");
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "unix port 6543 is in use");
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(the_socket_file_has_the_mode_asked_for) {
  for (int mode : {0777, 0700, 0660}) {
    settings.unix_mode = mode;
    auto l = listener();
    BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
    struct stat st;
    BOOST_REQUIRE(stat(path.c_str(), &st) == 0);
    BOOST_TEST((st.st_mode & 0777) == static_cast<mode_t>(mode));
  }
}

BOOST_AUTO_TEST_CASE(the_socket_file_has_the_group_asked_for) {
  settings.unix_group = std::to_string(getgid());
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  struct stat st;
  BOOST_REQUIRE(stat(path.c_str(), &st) == 0);
  BOOST_TEST(st.st_gid == getgid());
}

BOOST_AUTO_TEST_CASE(an_abstract_socket_has_no_file) {
  std::string name = "@listener-test-" + std::to_string(getpid());
  auto address = unix_address(name + "/.s.PGSQL.6543");
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(name, kPort)) == "it works");
  BOOST_TEST(is_accepting(*address));
  BOOST_TEST(reason(listener()->listen_unix(name, kPort)) == "bind(): Address already in use");
  l.reset();
  BOOST_TEST(client_of(*address) == -1);
}

BOOST_AUTO_TEST_CASE(impossible_places_are_refused) {
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder + "/" + std::string(120, 'x'), kPort)) == "unix socket path is too long");
  BOOST_TEST(reason(l->listen_unix(folder + "/none", kPort)) == "bind(): No such file or directory");
  BOOST_TEST(reason(l->listen_tcp(*parse_ip("192.0.2.1", kPort))) == "bind(): Cannot assign requested address");
  BOOST_TEST(l->empty());
}

BOOST_AUTO_TEST_CASE(clients_of_tcp_are_accepted) {
  SocketAddress address = free_address();
  auto l = listener();
  BOOST_TEST(reason(l->listen_tcp(address)) == "it works");
  BOOST_REQUIRE(l->descriptions().size() == 1u);
  BOOST_TEST(l->descriptions()[0] == to_text(address));
  Fd client = client_of(address);
  BOOST_REQUIRE(run_until({&loop}, [this] { return accepted.size() == 1; }));
  BOOST_TEST(to_text(peers[0]) == to_text(local_address(client)));
  BOOST_TEST((fcntl(accepted[0], F_GETFL) & O_NONBLOCK) != 0);
}

BOOST_AUTO_TEST_CASE(a_silent_client_is_seen_in_spite_of_deferring) {
  settings.defer_accept = true;
  SocketAddress address = free_address();
  auto l = listener();
  BOOST_TEST(reason(l->listen_tcp(address)) == "it works");
  Fd client = client_of(address);
  put(client, "x");
  BOOST_TEST(run_until({&loop}, [this] { return accepted.size() == 1; }));
}

BOOST_AUTO_TEST_CASE(a_port_is_shared_only_if_asked_for) {
  SocketAddress address = free_address();
  auto first = listener(), second = listener();
  BOOST_TEST(reason(first->listen_tcp(address)) == "it works");
  BOOST_TEST(reason(second->listen_tcp(address)) == "bind(): Address already in use");
  first.reset();
  settings.reuseport = true;
  first = listener();
  second = listener();
  BOOST_TEST(reason(first->listen_tcp(address)) == "it works");
  BOOST_TEST(reason(second->listen_tcp(address)) == "it works");
}

BOOST_AUTO_TEST_CASE(closing_tcp_leaves_unix_sockets) {
  SocketAddress address = free_address();
  auto l = listener();
  BOOST_TEST(reason(l->listen_tcp(address)) == "it works");
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  BOOST_TEST(l->descriptions().size() == 2u);
  l->close_tcp();
  BOOST_TEST(l->descriptions().size() == 1u);
  BOOST_TEST(client_of(address) == -1);
  BOOST_TEST(is_accepting(*unix_address(path)));
}

BOOST_AUTO_TEST_CASE(the_kernel_queues_clients_while_we_are_inactive) {
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  l->set_active(false);
  Fd client = client_of(*unix_address(path));
  BOOST_TEST(client >= 0);
  turn(loop);
  BOOST_TEST(accepted.empty());
  l->set_active(true);
  turn(loop);
  BOOST_TEST(accepted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_callback_may_stop_the_accepting) {
  std::unique_ptr<Listener> l;
  l = std::make_unique<Listener>(loop, settings, [&](int fd, const SocketAddress&) {
    accepted.emplace_back(fd);
    l->set_active(false);
  });
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  Fd one = client_of(*unix_address(path)), two = client_of(*unix_address(path));
  turn(loop);
  BOOST_TEST(accepted.size() == 1u);
  l->set_active(true);
  turn(loop);
  BOOST_TEST(accepted.size() == 2u);
}

// The error is logged once, then a rest, in which the loop has nothing to do for the listener.
struct OutOfDescriptors : ListenerFixture {
  rlimit saved{};
  OutOfDescriptors() { getrlimit(RLIMIT_NOFILE, &saved); }
  ~OutOfDescriptors() { setrlimit(RLIMIT_NOFILE, &saved); }
  void allow_no_more() {
    rlimit none = saved;
    Fd probe(dup(0));
    none.rlim_cur = static_cast<rlim_t>(probe);  // the lowest free one is over the limit then
    setrlimit(RLIMIT_NOFILE, &none);
  }
  int waiting_events() { return event_base_get_num_events(loop.base(), EVENT_BASE_COUNT_ADDED); }
};

BOOST_FIXTURE_TEST_CASE(without_descriptors_it_rests, OutOfDescriptors) {
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  Fd client = client_of(*unix_address(path));
  allow_no_more();
  for (int i = 0; i < 3; ++i) turn(loop);
  setrlimit(RLIMIT_NOFILE, &saved);
  std::string log = sandbox.log();
  BOOST_TEST(log.ends_with("ERROR accept() failed: Too many open files\n"));
  BOOST_TEST(log.find("accept()") == log.rfind("accept()"));
  BOOST_TEST(accepted.empty());
  l->set_active(true);
  turn(loop);
  BOOST_TEST(accepted.size() == 1u);
}

// Whoever stops the listener during its rest means it: the end of the rest must not start it again.
BOOST_FIXTURE_TEST_CASE(the_end_of_a_rest_does_not_undo_a_stop, OutOfDescriptors) {
  auto l = listener();
  BOOST_TEST(reason(l->listen_unix(folder, kPort)) == "it works");
  int active_events = waiting_events();
  Fd client = client_of(*unix_address(path));
  allow_no_more();
  turn(loop);
  setrlimit(RLIMIT_NOFILE, &saved);
  BOOST_TEST(waiting_events() == active_events);  // the end of the rest instead of the socket
  l->set_active(false);
  BOOST_TEST(waiting_events() == active_events - 1);
  l->set_active(true);
  BOOST_TEST(waiting_events() == active_events);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
