#!/bin/sh
# The manual pages and the sample know every key that the sources know, and the pages are roff without faults.
# Keys are taken from the sources as text, so that the generator of the lists is checked too.
set -u
export LC_ALL=C
config=${top_srcdir:-.}/src/config
failed=0

fail() {
  echo "$*" >&2
  failed=1
}

# FILE PATTERN: the first words in quotes of the lines that match.
keys_in() {
  sed -nE "s/^ *\{\"([a-z0-9_]+)\", $2.*/\1/p" "$config/$1"
}

# SECTION of lokadb-proxy.ini.5
section() {
  awk -v title="$1" '/^\.SH/ { inside = index($0, title) > 0 } inside' doc/lokadb-proxy.ini.5
}

# SECTION MINIMUM KEY...: each key is named in the section; so many at least were found in the sources.
named() {
  where=$1
  least=$2
  shift 2
  [ $# -ge "$least" ] || fail "only $# keys of $where found in the sources: is $0 out of date?"
  text=$(section "$where")
  for key in "$@"; do
    printf '%s\n' "$text" | grep -E '^\.(B|BR) ' | grep -qw -- "$key" || fail "lokadb-proxy.ini.5, $where: no $key"
  done
}

for file in doc/lokadb-proxy.1 doc/lokadb-proxy.ini.5 etc/lokadb-proxy.ini; do
  [ -s "$file" ] || { echo "$file was not built" >&2; exit 1; }
done
options=$(keys_in options.cc '&Options::')
named '[pgbouncer]' 95 $options
named '[databases]' 18 dbname host port pool_mode load_balance_hosts $(keys_in entries.cc '&DatabaseConfig::')
named '[users]' 10 pool_mode $(keys_in entries.cc '&UserConfig::')
named '[peers]' 3 host port pool_size
for key in $options; do
  [ "$(grep -c "^;$key =" etc/lokadb-proxy.ini)" = 1 ] || fail "etc/lokadb-proxy.ini: $key is not there once"
done
for key in $(keys_in entries.cc '&(DatabaseConfig|UserConfig)::'); do
  [ "$key" = reserve_pool ] || grep -qw "$key" etc/lokadb-proxy.ini || fail "etc/lokadb-proxy.ini: no $key"
done

for page in doc/lokadb-proxy.1 doc/lokadb-proxy.ini.5; do
  faults=$(groff -man -ww -Tutf8 -Kutf8 "$page" 2>&1 >/dev/null) || fail "$page: groff failed (package groff-base)"
  [ -z "$faults" ] || fail "$page: $faults"
  ! grep -n '@[A-Z]*@' "$page" || fail "$page: a placeholder was left"
done
exit $failed
