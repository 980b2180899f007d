#!/usr/bin/env bash
# Builds davit's image, or with the argument "dnsmasq" that of the chart's dnsmasq, with docker, where its daemon answers,
# or with buildah.
#   IMAGE         its name; default localhost/davit:VERSION, or localhost/davit-dnsmasq:VERSION
#   PLATFORM      such as linux/arm64; default: this machine's
#   BASE          what it is put on, and BUILD_BASE what it is built in; default: the Containerfile's
#   BUILDER_ARGS  further words for the builder, such as "--network host"
#   ARCHIVE       also write it to this file, as an OCI archive
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
kind=${1:+-$1}
image=${IMAGE:-localhost/davit$kind:$version}
args=(--file "Containerfile${1:+.$1}" --tag "$image" --build-arg "VERSION=$version")
args+=(--build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)")
for name in BASE BUILD_BASE; do
  [ -z "${!name:-}" ] || args+=(--build-arg "$name=${!name}")
done
[ -z "${PLATFORM:-}" ] || args+=(--platform "$PLATFORM")
# shellcheck disable=SC2206 # several words on purpose
args+=(${BUILDER_ARGS:-})

if docker info >/dev/null 2>&1; then
  docker build "${args[@]}" .
  [ -z "${ARCHIVE:-}" ] || docker save --output "$ARCHIVE" "$image"
elif command -v buildah >/dev/null; then
  buildah build --format docker --layers "${args[@]}" .
  [ -z "${ARCHIVE:-}" ] || { rm -f "$ARCHIVE"; buildah push --quiet "$image" "docker-archive:$ARCHIVE:$image"; }
else
  echo "No builder: start docker, or install buildah" >&2
  exit 1
fi
echo "$image is built"
