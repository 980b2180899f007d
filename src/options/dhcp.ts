/** The options of DHCP and TFTP: `davit serve` runs dnsmasq for the machines of one network. */

import { type AddressRange, ipv4Number } from "../lib/text/ipv4.ts";
import { type Option, OptionRefusal } from "./parsing.ts";
import { directoryOption, one } from "./readers.ts";

const needsMode = [{ name: "dhcp", lack: "No DHCP", example: "proxy" }];

export const dhcpOptions = {
  dhcp: {
    flag: "dhcp",
    value: "proxy|FROM,TO[,ROUTER]",
    help:
      "run dnsmasq for DHCP and TFTP; proxy: beside your DHCP server, it only names what to boot; FROM,TO: it gives " +
      "these IPv4 addresses, and this router; default: no DHCP",
    read: one(readDhcpMode),
    needs: [{ name: "dhcpInterface", lack: "No network", example: "eth1" }],
  } satisfies Option<"proxy" | AddressRange>,
  dhcpInterface: {
    flag: "dhcp-interface",
    value: "NAME",
    help: "network interface of the machines; its address is also the default of --advertise-address",
    read: one(readInterfaceName),
    needs: needsMode,
  } satisfies Option<string>,
  loadersDir: {
    ...directoryOption(
      "loaders-dir",
      "loaders that machines get instead of those of Debian's packages, such as undionly.kpxe, snponly.efi or " +
        "ipxe-arm64.efi; docs/operate/dhcp.md lists the names",
    ),
    needs: needsMode,
  },
};

/** Reads the name of a network interface. dnsmasq would take further signs for a list, a pattern or a comment. */
export function readInterfaceName(text: string): string | OptionRefusal {
  const isName = /^(?!\.{1,2}$)[\w.-]{1,15}$/.test(text);
  return isName ? text : new OptionRefusal("must be a network interface, such as eth1: ip -brief address lists them");
}

function readDhcpMode(text: string): "proxy" | AddressRange | OptionRefusal {
  if (text === "proxy") return "proxy";
  const [from = "", to = "", router, ...rest] = text.split(",");
  const [first, last] = [from, to].map(ipv4Number);
  const isRange = first !== undefined && last !== undefined && rest.length === 0;
  if (!isRange || (router !== undefined && ipv4Number(router) === undefined)) {
    return new OptionRefusal("must be proxy, or addresses such as 192.168.1.100,192.168.1.199 with an optional router");
  }
  if (first > last) return new OptionRefusal("the first address must not be above the last one");
  return { from, to, router };
}
