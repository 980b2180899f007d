#!/bin/bash
# Unpacks Debian's cloud-init, and the Python packages that it needs, below .cache/cloud-init/, for the test that asks
# davit with it. Nothing is installed: an installed cloud-init would configure this computer when it starts next.
# Needs no root.
set -euo pipefail
umask 022

cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/.cache/cloud-init
new=$cache.new

fail() {
  echo "cloud-init: $1" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "this needs Debian's apt-get and dpkg-deb"
only_depends=(--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances)
packages=$(apt-cache depends --recurse "${only_depends[@]}" cloud-init | grep -E '^python3-[a-z]' | sort -u) ||
  fail "the package lists do not have it (apt-get update)"

rm -rf "$new"
mkdir -p "$new"
# shellcheck disable=SC2086 # one word for each package
(cd "$new" && apt-get download -qq -o APT::Sandbox::User= cloud-init $packages >&2) ||
  fail "it cannot be fetched; perhaps the package lists are old (apt-get update)"
for package in "$new"/*.deb; do
  dpkg-deb -x "$package" "$new"
done
rm -f "$new"/*.deb
# Renamed into place, so that what is there is whole.
rm -rf "$cache"
mv "$new" "$cache"
echo "cloud-init: $(find "$cache/usr/lib/python3/dist-packages" -maxdepth 1 | wc -l) Python packages in $cache"
