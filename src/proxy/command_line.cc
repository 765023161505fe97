#include "proxy/command_line.h"

#include <ares.h>
#include <event2/event.h>
#include <getopt.h>
#include <openssl/crypto.h>

#include <cstdio>
#include <cstdlib>

#include "admin/show.h"
#include "build_config.h"

namespace lokadb {

namespace {

// A file or link called pgbouncer, or pgbouncer-new, pgbouncer.old and the like.
bool is_pgbouncer(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("pgbouncer"); }

void print_help(const char* program) {
  std::printf(
      "%s is a connection pooler for PostgreSQL.\n\n"
      "Usage:\n"
      "  %s [OPTION]... CONFIG_FILE\n\n"
      "Options:\n"
      "  -d, --daemon         run in the background (needs a pidfile and a logfile)\n"
      "  -q, --quiet          write nothing to standard error\n"
      "  -R, --reboot         take over from the process that runs now\n"
      "  -u, --user=USERNAME  run as this user\n"
      "  -v, --verbose        tell more; may be given several times\n"
      "  -V, --version        show the version, then exit\n"
      "  -h, --help           show this help, then exit\n",
      program, program);
}

void print_version() {
  int major = 0;
  std::printf("%.*s\n", static_cast<int>(version_text().size()), version_text().data());
  std::printf("libevent %s\nadns: c-ares %s\ntls: %s\n", event_get_version(), ares_version(&major),
              OpenSSL_version(OPENSSL_VERSION));
#ifdef HAVE_SYSTEMD
  std::printf("systemd: yes\n");
#endif
  std::printf("lokadb-proxy: %s\n", PACKAGE_VERSION);
}

[[noreturn]] void usage_error(const char* program) {
  std::fprintf(stderr, "Try \"%s --help\" for more information.\n", program);
  std::exit(1);
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  static const option kLong[] = {{"daemon", no_argument, nullptr, 'd'},  {"quiet", no_argument, nullptr, 'q'},
                                 {"reboot", no_argument, nullptr, 'R'},  {"user", required_argument, nullptr, 'u'},
                                 {"verbose", no_argument, nullptr, 'v'}, {"version", no_argument, nullptr, 'V'},
                                 {"help", no_argument, nullptr, 'h'},    {nullptr, 0, nullptr, 0}};
  CommandLine out;
  out.as_pgbouncer = is_pgbouncer(argv[0]);
  int c;
  while ((c = getopt_long(argc, argv, "dqRu:vVh", kLong, nullptr)) != -1) {
    switch (c) {
      case 'd':
        out.daemon = true;
        break;
      case 'q':
        out.quiet = true;
        break;
      case 'R':
        out.reboot = true;
        break;
      case 'u':
        out.user = optarg;
        break;
      case 'v':
        ++out.verbose;
        break;
      case 'V':
        print_version();
        std::exit(0);
      case 'h':
        print_help(argv[0]);
        std::exit(0);
      default:
        usage_error(argv[0]);
    }
  }
  if (optind + 1 != argc) {
    if (optind >= argc)
      std::fprintf(stderr, "%s: no configuration file specified\n", argv[0]);
    else
      std::fprintf(stderr, "%s: too many arguments\n", argv[0]);
    usage_error(argv[0]);
  }
  out.config_file = argv[optind];
  return out;
}

}  // namespace lokadb
