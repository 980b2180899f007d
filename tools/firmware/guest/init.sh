#!/bin/busybox sh
# The first and only program of the quickstart's Linux: brings up the network, asks davit for this machine's configs and
# gives a shell. It reads these words of the kernel command line:
#
#   davit.url=http://HOST:PORT   where davit is; when that does not answer, the DHCP router is asked at the same port,
#                                which is how a QEMU guest reaches the host that runs both
#   davit.check=1                no shell: fetch and check /ignition, /generic and /metadata, say the verdict, power off
#   davit.check=NAME             no shell: run /checks/NAME.sh, which a further initrd brings, and power off
#   davit.install=1              no shell: an installer, whose config is a shell script: run /generic, and restart

main() {
  prepare
  start_network
  # Cheap boards have no uuid, or one of zeros, which Linux does not show.
  uuid=$(cat /sys/class/dmi/id/product_uuid 2>/dev/null | tr A-Z a-z)
  mac=$(cat /sys/class/net/eth0/address)
  url=$(find_davit)
  [ -z "$(argument davit.install)" ] || install_disk
  case $(argument davit.check) in
    1) check ;;
    ?*) . "/checks/$(argument davit.check).sh" ;;
    *)
      welcome
      # A terminal of its own makes Ctrl-C work. When the shell ends, so does the machine.
      PS1='davit:\w# ' setsid cttyhack sh
      ;;
  esac
  # A setting takes effect when the serial line has sent everything; without power it would lose the last lines.
  stty echo 2>/dev/null
  poweroff -f
}

prepare() {
  /bin/busybox --install -s /bin
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  mount -t devtmpfs devtmpfs /dev
  exec </dev/console >/dev/console 2>&1
  # From here on the screen is ours: kernel messages would break into what is printed. `dmesg` still has them.
  dmesg -n 1
}

start_network() {
  for module in /modules/*.ko; do insmod "$module"; done
  ip link set lo up
  # The driver finds its card a moment after it is loaded.
  tries=0
  while [ ! -e /sys/class/net/eth0 ] && [ $tries -lt 50 ]; do
    usleep 100000
    tries=$((tries + 1))
  done
  case $(argument davit.url) in
    *\[*) start_ipv6 ;;
    *) udhcpc -q -n -i eth0 -s /etc/udhcpc.sh || echo "No DHCP lease: this machine has no network" ;;
  esac
}

# Waits for an address from the router's advertisements, at most 15 s.
start_ipv6() {
  ip link set eth0 up
  tries=0
  until ip -6 addr show dev eth0 scope global | grep inet6 | grep -qv tentative; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] || { echo "No IPv6 address: this machine has no network"; return; }
    usleep 100000
  done
}

# Prints the value of NAME=value on the kernel command line.
argument() {
  for word in $(cat /proc/cmdline); do
    case $word in "$1="*) echo "${word#*=}" ;; esac
  done
}

# Prints the address at which davit answers, or nothing.
find_davit() {
  given=$(argument davit.url)
  router=$(ip route | sed -n 's/^default via \([^ ]*\).*/\1/p')
  for candidate in "$given" "http://$router:${given##*:}"; do
    if [ -n "$given" ] && timeout 5 wget -q -O /dev/null "$candidate/boot.ipxe" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

# Fetches /NAME into a file, as this machine.
fetch() {
  timeout 20 wget -q -O "/tmp/$1" "$url/$1?uuid=$uuid&mac=$mac"
}

welcome() {
  echo
  echo "This is Linux $(uname -r), booted by davit."
  echo "uuid $uuid, mac $mac"
  if fetch metadata; then
    echo "davit at $url knows this machine by:"
    sed 's/^/  /' /tmp/metadata
  else
    echo "davit knows nothing of this machine, or does not answer at '$(argument davit.url)'"
  fi
  echo 'Leave with "exit"; in QEMU also with Ctrl-A X.'
  echo
}

install_disk() {
  echo "Installing by $url/generic"
  if fetch generic && sh -e /tmp/generic; then echo "Installed"; else echo "Not installed"; fi
  stty echo 2>/dev/null
  reboot -f
}

check() {
  verdict=PASSED
  echo "KERNEL-COMMAND-LINE $(cat /proc/cmdline)"
  echo "DAVIT-URL $url"
  for name in ignition generic metadata; do
    fetch "$name"
    expect "$name is fetched" test $? = 0
    echo "BEGIN $name"
    cat "/tmp/$name"
    echo
    echo "END $name"
  done
  expect "ignition has a version" grep -q '"version": *"[0-9.]*"' /tmp/ignition
  expect "generic has my uuid" grep -q "\"uuid\": *\"$uuid\"" /tmp/generic
  expect "generic has my mac" grep -q "\"mac\": *\"$mac\"" /tmp/generic
  expect "metadata has my mac" grep -qx "MAC=$mac" /tmp/metadata
  expect "metadata has my uuid" grep -qx "REQUEST_QUERY_UUID=$uuid" /tmp/metadata
  echo "DAVIT-CHECK $verdict"
}

# Runs a test command and prints its result under a name.
expect() {
  title=$1
  shift
  if "$@"; then
    echo "CHECK ok: $title"
  else
    echo "CHECK failed: $title"
    verdict=FAILED
  fi
}

main
