#!/bin/busybox sh
# Called by busybox udhcpc with what the DHCP server said in $interface, $ip, $mask, $router and $dns.

case $1 in
  deconfig)
    ip addr flush dev "$interface"
    ip link set "$interface" up
    ;;
  bound | renew)
    ip addr add "$ip/$mask" dev "$interface" 2>/dev/null
    if [ -n "$router" ]; then ip route replace default via "${router%% *}"; fi
    : >/etc/resolv.conf
    for server in $dns; do echo "nameserver $server" >>/etc/resolv.conf; done
    ;;
esac
