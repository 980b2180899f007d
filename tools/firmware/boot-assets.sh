#!/bin/bash
# Builds the Linux that the quickstart boots: the kernel of Debian's package linux-image-cloud-amd64, and an initrd of
# busybox-static, the kernel's virtio drivers for network and disk and the scripts in guest/. Beside them, for amd64, the
# image of a disk that says that it was booted: what docs/use/install-once.md installs.
#
#   tools/firmware/boot-assets.sh [DIRECTORY [amd64|arm64]]      default: assets/quickstart, which /assets/quickstart/
#                                                               serves, and amd64
#
# Needs no root: what is not installed is fetched with `apt-get download` and unpacked below .cache/. For arm64 that is
# everything, with GRUB and iPXE, from package lists of its own: the system's dpkg and apt are left as they are.
# Equal packages give equal files, byte for byte.
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
output=${1:-$repository/assets/quickstart}
architecture=${2:-amd64}
cache=$repository/.cache/boot-assets
foreign_cache=$repository/.cache/boot-assets-arm64

# In the order in which each finds what it depends on. The last two are the network and the disk.
modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net
  virtio_blk)

main() {
  local kernel busybox tool work
  # Of this computer, to pack with.
  tool=$(find_busybox / || find_busybox "$cache") || {
    fetch busybox-static
    tool=$(find_busybox "$cache") || fail "busybox-static" "it holds no static busybox"
  }
  case $architecture in
    amd64)
      busybox=$tool
      kernel=$(find_kernel / || find_kernel "$cache") || {
        fetch linux-image-cloud-amd64
        kernel=$(find_kernel "$cache") || fail "linux-image-cloud-amd64" "it holds no kernel with its modules"
      }
      ;;
    arm64)
      grep -qs '^ipxe ' "$foreign_cache/versions" || fetch_foreign
      busybox=$(find_busybox "$foreign_cache") || fail "busybox-static:arm64" "it holds no static busybox"
      kernel=$(find_kernel "$foreign_cache") || fail "linux-image-cloud-arm64" "it holds no kernel with its modules"
      ;;
    *) fail "linux-image-cloud-$architecture" "only amd64 and arm64 are known" ;;
  esac

  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory's name as it is now
  trap "rm -rf '$work'" EXIT
  fill_initrd "$work" "$kernel" "$busybox" "$tool"

  # Renamed into place, so that a running davit never serves half a file.
  mkdir -p "$output"
  pack "$work" "$tool" >"$output/.initrd.gz.new"
  cp "$kernel" "$output/.vmlinuz.new"
  chmod 0644 "$output/.vmlinuz.new"
  [[ $architecture != amd64 ]] || write_disk "$output"
  mv "$output/.initrd.gz.new" "$output/initrd.gz"
  mv "$output/.vmlinuz.new" "$output/vmlinuz"
  echo "boot-assets: $(basename "$kernel") and $(stat -c %s "$output/initrd.gz") bytes of initrd in $output"
}

# Prints the newest cloud kernel below a root that is readable and has its modules.
find_kernel() {
  local kernel
  while read -r kernel; do
    if [[ -r $kernel && -n $(module_folder "$kernel") ]]; then
      echo "$kernel"
      return 0
    fi
  done < <(printf '%s\n' "${1%/}"/boot/vmlinuz-*-cloud-"$architecture" | sort -rV)
  return 1
}

# Prints where a kernel's modules are. Debian 13 has them below /usr.
module_folder() {
  local version=${1##*/vmlinuz-} root=${1%/boot/*} folder
  for folder in "$root/usr/lib/modules/$version" "$root/lib/modules/$version"; do
    if [[ -d $folder ]]; then
      echo "$folder"
      return 0
    fi
  done
}

# Prints a busybox that runs without the C library: Debian's package busybox has the same path but needs it.
find_busybox() {
  local program
  for program in "${1%/}/usr/bin/busybox" "${1%/}/bin/busybox"; do
    if [[ -x $program ]] && ! grep -q '/ld-linux' "$program"; then
      echo "$program"
      return 0
    fi
  done
  return 1
}

# Downloads a package and what carries its files, and unpacks both below the cache.
fetch() {
  local package=$1 name kernel_package='s/^ *Depends: \(linux-image-[0-9].*\)/\1/p'
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    fail "$package" "it is neither installed nor can be fetched: this needs Debian's apt-get and dpkg-deb"
  echo "boot-assets: fetching $package" >&2
  mkdir -p "$cache"
  # linux-image-cloud-amd64 is empty itself and depends on the newest kernel's package.
  for name in "$package" $(apt-cache depends "$package" 2>/dev/null | sed -n "$kernel_package"); do
    (cd "$cache" && rm -f ./*.deb && apt-get download -qq "$name" >&2 && dpkg-deb -x ./*.deb . && rm -f ./*.deb) ||
      fail "$package" "$name cannot be fetched; perhaps the package lists are old (apt-get update)"
  done
}

# Fetches all that arm64 machines need, and unpacks it below a cache of its own.
fetch_foreign() {
  local name kernel_package='s/^ *Depends: \(linux-image-[0-9].*\)/\1/p' apt=$foreign_cache/apt
  local options=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State=$apt" -o "Dir::Cache=$apt"
    -o Dir::State::status=/dev/null -o Debug::NoLocking=1 -o APT::Sandbox::User=)
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    fail "linux-image-cloud-arm64" "it cannot be fetched: this needs Debian's apt-get and dpkg-deb"
  echo "boot-assets: fetching linux-image-cloud-arm64, busybox-static, grub-efi-arm64-bin and ipxe" >&2
  rm -rf "$foreign_cache"
  mkdir -p "$apt"/{lists,archives}/partial
  apt-get "${options[@]}" update -qq >&2 || fail "linux-image-cloud-arm64" "the package lists cannot be fetched"
  for name in busybox-static grub-efi-arm64-bin \
    $(apt-cache "${options[@]}" depends linux-image-cloud-arm64 | sed -n "$kernel_package"); do
    unpack_foreign "$apt" "$name"
  done
  # Debian 12's iPXE has nothing for arm64, Debian 13's has.
  echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >"$apt/ipxe.list"
  options+=(-o "Dir::Etc::SourceList=$apt/ipxe.list" -o Dir::Etc::SourceParts=/dev/null)
  apt-get "${options[@]}" update -qq >&2 || fail "ipxe" "the package lists of Debian 13 cannot be fetched"
  unpack_foreign "$apt" ipxe
  mv "$apt/versions" "$foreign_cache/versions"
  rm -rf "$apt"
}

# Downloads a package by the caller's options of apt, unpacks it below the cache, and notes its version.
unpack_foreign() {
  local apt=$1 name=$2
  (cd "$apt" && apt-get "${options[@]}" download -qq "$name" >&2 && dpkg-deb -x ./*.deb "$foreign_cache" &&
    dpkg-deb -W --showformat='${Package} ${Version}\n' ./*.deb >>versions && rm -f ./*.deb) ||
    fail "$name:arm64" "it cannot be fetched"
}

fill_initrd() {
  local root=$1 kernel=$2 busybox=$3 tool=$4 module file number=10 folder
  folder=$(module_folder "$kernel")
  chmod 0755 "$root"
  mkdir -p "$root"/{bin,dev,etc,modules,proc,sys,tmp}
  install -m 0755 "$busybox" "$root/bin/busybox"
  install -m 0755 "$here/guest/init.sh" "$root/init"
  install -m 0755 "$here/guest/udhcpc.sh" "$root/etc/udhcpc.sh"
  for module in "${modules[@]}"; do
    # A driver that this kernel has built in is no file. Debian 13 compresses them; insmod wants them plain.
    file=$(find "$folder" -name "$module.ko" -o -name "$module.ko.xz" | head -n 1)
    case $file in
      *.xz) "$tool" unxz -c "$file" >"$root/modules/$number-$module.ko" ;;
      *.ko) install -m 0644 "$file" "$root/modules/$number-$module.ko" ;;
    esac
    number=$((number + 1))
  done
}

# Writes 1 MiB that a BIOS boots: it says so on the serial line, and switches a QEMU machine `pc` off. The code is that of
# test/firmware/bootable-disk.ts, which explains it.
write_disk() {
  local new=$1/.disk.img.new
  {
    printf '\x31\xc0\x8e\xd8\xfc\xbe\x26\x7c\xac\x84\xc0\x74\x11\x88\xc4\xba\xfd\x03\xec\xa8\x20\x74\xfb\x88\xe0'
    printf '\xb2\xf8\xee\xeb\xea\xba\x04\x06\xb8\x00\x20\xef\xf4\r\nBOOTED FROM DISK\r\n\0'
  } >"$new"
  truncate -s 510 "$new"
  printf '\x55\xaa' >>"$new"
  truncate -s 1M "$new"
  chmod 0644 "$new"
  mv "$new" "$1/disk.img"
}

# Writes the archive with nothing in it that differs from one machine or day to the next.
pack() {
  local root=$1 busybox=$2
  find "$root" -exec touch --no-dereference --date=@0 {} +
  (cd "$root" && find . | LC_ALL=C sort |
    "$busybox" cpio -o -H newc -R 0:0 --renumber-inodes --ignore-devno 2>/dev/null | gzip -9n)
}

fail() {
  echo "boot-assets: cannot use the package $1: $2" >&2
  echo "boot-assets: on Debian, install it with: apt-get install $1" >&2
  exit 1
}

main
