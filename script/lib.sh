# Shared by the scripts in this folder (bash; sourced, never run). Sets top, the root of the tree, and goes there.
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
# Debian's Python has the packages below, whatever else is in front in PATH.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

pg_bin=/usr/lib/postgresql/15/bin
python=/usr/bin/python3

# Every Debian package that building, testing, benchmarking and the demo need; with the next lists the only such one.
packages=(
  autoconf automake g++ groff-base make pkg-config
  libboost-test-dev libc-ares-dev libevent-dev libidn-dev libldap-dev libpam0g-dev libpg-query-dev libpq-dev
  libprotobuf-c-dev libssl-dev libsystemd-dev nlohmann-json3-dev
  postgresql-15 postgresql-client-15 postgresql-contrib
  openssl procps slapd
  python3 python3-asyncpg python3-django python3-psycopg python3-psycopg2 python3-pytest python3-pytest-xdist
  python3-sqlalchemy
  ruby ruby-activerecord ruby-pg
)

# What script/drivers needs beyond those (and npm, which brings node).
driver_packages=(
  golang-go golang-github-jackc-pgx-v4-dev golang-github-lib-pq-dev
  libdbd-pg-perl libpostgresql-jdbc-java libpqxx-dev openjdk-17-jdk-headless php-cli php-pgsql
)

# What script/package-test needs beyond those.
packaging_packages=(debhelper debootstrap dpkg-dev fakeroot git iproute2 lintian systemd)

say() { printf '== %s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -E "$@"; fi
}

# PostgreSQL and the proxy refuse to run as root.
as_service_user() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --init-groups "$@"; else "$@"; fi
}

# Installs what is missing of the packages named; silent and offline when nothing is.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  # The tests start a directory of their own; the system's stays without one.
  if [[ " ${missing[*]} " == *" slapd "* ]] && command -v debconf-set-selections >/dev/null; then
    echo 'slapd slapd/no_configuration boolean true' | as_root debconf-set-selections
  fi
  local wait=(-o DPkg::Lock::Timeout=300)
  as_root apt-get "${wait[@]}" -qq update
  as_root apt-get "${wait[@]}" -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# build_in DIR [configure arguments...]: configures when the arguments or configure.ac changed, then builds all,
# test programs included.
build_in() {
  local dir=$1
  shift
  [ -f build-aux/install-sh ] && [ configure -nt configure.ac ] || autoreconf -i >/dev/null 2>&1 || autoreconf -i
  mkdir -p "$dir"
  if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/configured-with" 2>/dev/null)" != "$*" ]; then
    say "configuring $dir"
    (cd "$dir" && ../configure "$@" >configure.out 2>&1) || {
      tail -20 "$dir/configure.out" >&2
      die "configure failed, see $dir/config.log"
    }
    printf '%s\n' "$*" >"$dir/configured-with"
  fi
  say "building $dir"
  make -s -C "$dir" -j "$(nproc)" all
}

# As users get it, but for -g1: what stack traces need, compiled a third quicker.
build_normal() { build_in build --enable-werror CXXFLAGS='-O2 -g1'; }
# With sanitizers g++ takes parts of <regex> for uninitialized, which they are not.
build_asan() {
  build_in build-asan --enable-werror --enable-asan --enable-ubsan CXXFLAGS='-O1 -g1 -Wno-maybe-uninitialized'
}

# A free TCP port of the loopback address.
free_port() {
  local port
  for port in $(shuf -i 20000-32000 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
      echo "$port"
      return
    }
  done
  die 'no free port'
}

# start_postgres DIR PORT: a private cluster with trust authentication, sockets and data in DIR, no durability.
start_postgres() {
  local dir=$1 port=$2
  as_service_user "$pg_bin/initdb" -D "$dir/data" -U postgres -A trust --no-sync >"$dir/initdb.log"
  as_service_user "$pg_bin/pg_ctl" -s -w -D "$dir/data" -l "$dir/postgres.log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir -c fsync=off" start
}

stop_postgres() {
  as_service_user "$pg_bin/pg_ctl" -s -m immediate -D "$1/data" stop
}

# A new folder that the service user owns. Its name is short: socket paths are limited to 107 bytes.
service_dir() {
  local dir
  dir=$(mktemp -d "${TMPDIR:-/tmp}/lokadb.XXXXXX")
  if [ "$(id -u)" = 0 ]; then chown postgres: "$dir"; fi
  echo "$dir"
}
