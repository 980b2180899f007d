#!/bin/bash
# Unpacks promtool of Debian's prometheus below .cache/promtool/, for the tests of the chart's alerts. Nothing is
# installed: the package would start a Prometheus. Needs no root.
set -euo pipefail
umask 022

cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache/promtool
new=$cache.new

fail() {
  echo "promtool: $1" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "this needs Debian's apt-get and dpkg-deb"
[ ! -x "$cache/promtool" ] || exit 0
rm -rf "$new"
mkdir -p "$new"
(cd "$new" && apt-get download -qq -o APT::Sandbox::User= prometheus >&2) ||
  fail "it cannot be fetched; perhaps the package lists are old (apt-get update)"
dpkg-deb --fsys-tarfile "$new"/*.deb | tar -x -C "$new" ./usr/bin/promtool
mv "$new/usr/bin/promtool" "$new/promtool"
rm -rf "$new"/*.deb "$new/usr"
# Renamed into place, so that what is there is whole.
rm -rf "$cache"
mv "$new" "$cache"
echo "promtool: $("$cache/promtool" --version 2>&1 | head -1)"
