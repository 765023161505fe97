#!/bin/sh
# doc/parity.md names tests: each must be there.
set -eu
cd "${top_srcdir:-$(dirname "$0")/..}"
missing=0
for name in $(grep -o 'test_[a-z0-9_]*::[a-z0-9_][a-z0-9_]*' doc/parity.md | sort -u); do
  file=test/system/${name%%::*}.py
  [ -f "$file" ] && grep -q "^def test_${name##*::}(" "$file" || { echo "no such test: $name" >&2; missing=1; }
done
for name in $(grep -o 'unit/[a-z0-9_/]*::[a-z0-9_][a-z0-9_]*' doc/parity.md | sort -u); do
  file=test/${name%%::*}.cc
  [ -f "$file" ] && grep -q "_TEST_CASE(${name##*::}[,)]" "$file" || { echo "no such test: $name" >&2; missing=1; }
done
exit $missing
