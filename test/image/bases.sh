#!/usr/bin/env bash
# Builds the image's two bases from Debian packages with buildah, for machines that reach no image registry. Needs root,
# and the packages buildah and mmdebstrap.
#   localhost/davit-base:12        what the image is put on: glibc, libstdc++, certificates; ARCH=arm64 for that processor
#   localhost/davit-build-base:24  what it is built in: a small Debian with this checkout's Node, and npm
set -euo pipefail
cd "$(dirname "$0")/../.."
arch=${ARCH:-$(dpkg --print-architecture)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An apt of its own, so that another processor's packages can be had without telling the machine of it.
apt_root=$work/apt
mkdir -p "$apt_root"/{lists/partial,archives/partial} "$work/debs" "$work/root" "$work/none"
: >"$apt_root/status"
apt() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root \
    -o Dir::State="$apt_root" -o Dir::State::Lists="$apt_root/lists" -o Dir::State::Status="$apt_root/status" \
    -o Dir::Cache="$apt_root" "$@"
}
apt update
(cd "$work/debs" && apt download libc6 libstdc++6 libgcc-s1 gcc-12-base ca-certificates netbase tzdata)
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/root"; done
root=$work/root
rm -rf "$root"/usr/share/{doc,man,locale,lintian,bug,gcc,gdb} "$root"/usr/{sbin,bin} "$root"/{sbin,etc/init.d}
mkdir -p "$root"/{tmp,proc,sys,dev,etc/ssl/certs,home/nonroot}
chmod 1777 "$root/tmp"
cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf 'FROM scratch\nCOPY root/ /\nUSER 65532:65532\n' >"$work/Containerfile"
tag=localhost/davit-base:12
[ "$arch" = "$(dpkg --print-architecture)" ] || tag=$tag-$arch
platform=linux/$arch
# A builder that is asked for linux/arm64 looks for this variant of it.
[ "$arch" != arm64 ] || platform=$platform/v8
buildah build --quiet --format docker --platform "$platform" --isolation chroot --tag "$tag" "$work" >/dev/null
echo "$tag is built"
if [ "$arch" != "$(dpkg --print-architecture)" ]; then
  echo "BASE=$(buildah images --quiet "$tag") # buildah finds that of another processor by its id only"
  exit 0
fi

mkdir "$work/npm"
(cd "$work/npm" && npm install --silent --no-audit --no-fund --prefix . npm@11)
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$work/build.tar"
mkdir -p "$work/build/usr/local/bin" "$work/build/usr/local/lib"
cp node_modules/node-linux-*/bin/node "$work/build/usr/local/bin/"
cp -r "$work/npm/node_modules" "$work/build/usr/local/lib/node_modules"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/build/usr/local/bin/npm"
printf 'FROM scratch\nADD build.tar /\nCOPY build/ /\nENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt\n' \
  >"$work/Containerfile"
buildah build --quiet --format docker --isolation chroot --tag localhost/davit-build-base:24 "$work" >/dev/null
echo "localhost/davit-build-base:24 is built"
