/**
 * The configuration of dnsmasq: DHCP and TFTP for machines that boot by davit. The chart renders the same text for its
 * DaemonSet, and test/chart/dnsmasq.test.ts compares the two.
 */

import { StartError } from "../lib/start-error.ts";

/** What dnsmasq does beside TFTP. */
export type DhcpRole =
  /** It only names what to boot, in this network. Another server gives the addresses. */
  | { readonly subnet: string }
  /** It gives addresses. A range has the form of dnsmasq: `FROM,TO`, with an optional time of the lease. */
  | { readonly ranges: readonly string[]; readonly router: string | undefined };

export interface DnsmasqConfigOptions {
  readonly role: DhcpRole;
  /** `HOST:PORT` at which machines reach davit. */
  readonly advertised: string;
  /** The user that dnsmasq changes to; undefined: the one that starts it. */
  readonly user?: string;
  /** Undefined: all networks of the computer. */
  readonly interface: string | undefined;
  readonly leaseFile: string;
  readonly tftpRoot: string;
  /** The loader of each kind of firmware, by dnsmasq's name of the kind: a file below `tftpRoot`. */
  readonly loaders: Readonly<Record<string, string>>;
  /** URLs of loaders for UEFI HTTP Boot, by the number of DHCP option 93. A proxy-DHCP of dnsmasq cannot give them. */
  readonly httpLoaders?: Readonly<Record<number, string>>;
}

/** The names that dnsmasq has for the values of DHCP option 93, from 0. Other names stand for themselves. */
const architectures =
  "x86PC PC98 IA64_EFI Alpha Arc_x86 Intel_Lean_Client IA32_EFI x86-64_EFI Xscale_EFI BC_EFI ARM32_EFI ARM64_EFI";

const dynamicLines = [
  "# Not bind-interfaces, with which tftp-single-port sends nothing (dnsmasq 2.90).",
  "bind-dynamic",
];

/** The signs that have no meaning in a line of dnsmasq: no comma, quote, space, `#`, or end of the line. */
const plainWord = /^[\w./:[\]-]+$/;

/**
 * Returns the text of dnsmasq.conf, without a newline at its end. iPXE always gets the chain script of this davit.
 * @throws {StartError} for a word that would change the meaning of a line.
 */
export function dnsmasqConfig(options: DnsmasqConfigOptions): string {
  const { role, advertised, user, interface: device, leaseFile, tftpRoot, loaders, httpLoaders = {} } = options;
  assertPlain(advertised, device ?? "any", leaseFile, tftpRoot, ...Object.entries(loaders).flat());
  assertPlain(...Object.values(httpLoaders));
  const script = `http://${advertised}/chain.ipxe`;
  return [
    "# No DNS.",
    "port=0",
    "log-facility=-",
    "log-dhcp",
    ...(user === undefined ? [] : ["# The user that it is. Another one would lose the capabilities.", `user=${user}`]),
    ...(device === undefined ? [] : [`interface=${device}`, ...dynamicLines]),
    "# dnsmasq opens it even as a proxy-DHCP.",
    `dhcp-leasefile=${leaseFile}`,
    ...roleLines(role),
    "enable-tftp",
    `tftp-root=${tftpRoot}`,
    "# All of a transfer on port 69, which firewalls know.",
    "tftp-single-port",
    "# iPXE identifies itself by its user class or by option 175. As a client of a proxy-DHCP it takes the URL of a " +
      "service on",
    "# a BIOS, and that of dhcp-boot on UEFI.",
    "dhcp-userclass=set:ipxe,iPXE",
    "dhcp-match=set:ipxe,175",
    `dhcp-boot=tag:ipxe,${script}`,
    ...Object.entries(loaders)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([firmware, file]) => loaderLines(role, firmware, file, script)),
    ...("ranges" in role ? Object.entries(httpLoaders).flatMap(([number, url]) => httpLines(number, url)) : []),
  ].join("\n");
}

function roleLines(role: DhcpRole): readonly string[] {
  if ("subnet" in role) {
    assertPlain(role.subnet);
    return [`dhcp-range=${role.subnet},proxy`];
  }
  const { ranges, router } = role;
  assertPlain(...ranges.flatMap((range) => range.split(",")), router ?? "none");
  return [
    "# At its start it has no leases: it takes over those that machines still have.",
    "dhcp-authoritative",
    ...ranges.map((range) => `dhcp-range=${range}`),
    "# Without an address no router: the default would be this computer.",
    `dhcp-option=option:router${router === undefined ? "" : `,${router}`}`,
  ];
}

function loaderLines(role: DhcpRole, firmware: string, file: string, script: string): readonly string[] {
  if ("ranges" in role) {
    const number = architectures.split(" ").indexOf(firmware);
    return [
      `dhcp-match=set:${firmware},option:client-arch,${number < 0 ? firmware : number}`,
      `dhcp-boot=tag:!ipxe,tag:${firmware},${file}`,
    ];
  }
  return [
    `pxe-service=tag:!ipxe,${firmware},"${file.startsWith("grub") ? "GRUB" : "iPXE"}",${file}`,
    `pxe-service=tag:ipxe,${firmware},"davit",${script}`,
  ];
}

/** UEFI ignores a URL without this vendor class (UEFI 2.10, section 24.7.3). */
function httpLines(number: string, url: string): readonly string[] {
  return [
    `dhcp-match=set:http${number},option:client-arch,${number}`,
    `dhcp-boot=tag:!ipxe,tag:http${number},${url}`,
    `dhcp-option-force=tag:!ipxe,tag:http${number},60,HTTPClient`,
  ];
}

function assertPlain(...words: readonly string[]): void {
  const bad = words.find((word) => !plainWord.test(word));
  if (bad === undefined) return;
  throw new StartError(`Cannot write ${JSON.stringify(bad)} into the configuration of dnsmasq: use only letters, \
digits and . / : _ - in paths and names`);
}
