/** Checks before dnsmasq starts: the interface, the range, davit's rights, and the UDP ports. */

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { StartError } from "../lib/start-error.ts";
import { type AddressRange, ipv4Number, ipv4Text } from "../lib/text/ipv4.ts";
import { visible } from "../lib/text/visible.ts";

/** An IPv4 address of this computer. */
export interface DeviceAddress {
  /** The network interface. */
  readonly device: string;
  readonly address: string;
  /** The length of the network's prefix, in bits. */
  readonly prefix: number;
}

/** The network of an interface. */
export interface MachineNetwork extends DeviceAddress {
  /** The address of the network itself, such as 192.168.1.0. */
  readonly subnet: string;
}

/** Daemons and tools of the system are not on every user's PATH. */
export const systemPath = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin";
const atSystem = { timeout: 5_000, env: { PATH: systemPath, LC_ALL: "C" } };

/**
 * Finds the network of an interface by its first IPv4 address.
 * @param option the option that names the interface.
 * @throws {StartError} if there is no such interface, or it has no IPv4 address.
 */
export function networkOf(device: string, option: string, addresses: readonly DeviceAddress[]): MachineNetwork {
  const found = addresses.find((each) => each.device === device);
  if (found === undefined) {
    const shown = addresses.map((each) => `${visible(each.device)} (${each.address})`).join(", ");
    throw new StartError(
      `No IPv4 address on the network interface "${device}": ${shown && `give ${option} one of ${shown}, or `}` +
        `run ip address add ADDRESS/24 dev ${device}`,
    );
  }
  const size = 2 ** (32 - found.prefix);
  const subnet = ipv4Text(Math.floor((ipv4Number(found.address) ?? 0) / size) * size);
  return { ...found, subnet };
}

/**
 * Asks `ip` for the IPv4 addresses of this computer, except those of loopback. Node shows no interface without a cable,
 * and after a power cut the switch may start later than this computer.
 * @throws {StartError} without `ip`.
 */
export async function deviceAddresses(): Promise<readonly DeviceAddress[]> {
  try {
    const { stdout } = await promisify(execFile)("ip", ["-4", "-oneline", "address", "show"], atSystem);
    const lines = [...stdout.matchAll(/^\d+: (\S+) +inet (\d+\.\d+\.\d+\.\d+)\/(\d+) (.*)$/gm)];
    return lines.flatMap(([, device = "", address = "", prefix, rest = ""]) =>
      rest.includes("scope host") ? [] : [{ device, address, prefix: Number(prefix) }],
    );
  } catch (error) {
    throw new StartError("Cannot run ip, which shows the network interfaces: apt-get install iproute2", {
      cause: error,
    });
  }
}

/** @throws {StartError} for an address outside the network: dnsmasq would then give no address at all. */
export function assertInNetwork({ from, to, router }: AddressRange, network: MachineNetwork): void {
  const first = ipv4Number(network.subnet) ?? 0;
  const last = first + 2 ** (32 - network.prefix) - 1;
  for (const address of [from, to, ...(router === undefined ? [] : [router])]) {
    const number = ipv4Number(address) ?? 0;
    if (number > first && number < last) continue;
    const place = `${network.subnet}/${network.prefix} of "${network.device}"`;
    throw new StartError(`Cannot use ${address} in --dhcp: it is not in the network ${place}: correct one of the two`);
  }
}

/** Capabilities by their bits (linux/capability.h). */
const neededCapabilities: Readonly<Record<string, number>> = {
  CAP_NET_BIND_SERVICE: 10,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
};
const identityCapabilities = [6, 7, 8];

/** The user and the group `nobody` of Debian and most other distributions. */
export const nobody = 65_534;

/**
 * Returns true if dnsmasq can run as another user than davit: davit is root, and may change its user to `nobody`.
 * @throws {StartError} if davit lacks a capability that dnsmasq needs.
 */
export async function mayChangeUser(): Promise<boolean> {
  const status = await readFile("/proc/self/status", "utf8");
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const has = (bit: number) => ((effective >> BigInt(bit)) & 1n) === 1n;
  const missing = Object.entries(neededCapabilities).flatMap(([name, bit]) => (has(bit) ? [] : [name]));
  if (missing.length > 0) {
    throw new StartError(
      `Missing rights for --dhcp: ${missing.join(", ")}: run davit as root, or let systemd give them by ` +
        "AmbientCapabilities and CapabilityBoundingSet (docs/operate/dhcp.md)",
    );
  }
  const isRoot = /^Uid:\s*\d+\s+0\s/m.test(status);
  if (!isRoot || !identityCapabilities.every(has)) return false;
  // In a namespace of users, `nobody` may not exist.
  const map = await readFile("/proc/self/uid_map", "utf8");
  return map.split("\n").some((line) => {
    const [first = Number.NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return first <= nobody && nobody < first + count;
  });
}

/**
 * Asks `ss` who has the ports that dnsmasq opens. Without `ss`, dnsmasq itself finds most of them in use.
 * @throws {StartError} if another program of this computer has one of them.
 */
export async function assertPortsFree({ device, address }: MachineNetwork, isProxy: boolean): Promise<void> {
  const query = [67, 69, ...(isProxy ? [4011] : [])].map((port) => `sport = :${port}`).join(" or ");
  const { stdout } = await promisify(execFile)("ss", ["-Hulnp", query], atSystem).catch(() => ({ stdout: "" }));
  for (const line of stdout.split("\n")) {
    const [, host = "", on = device, port] = /^\S+\s+\d+\s+\d+\s+(\S+?)(?:%(\S+))?:(\d+)\s/.exec(line) ?? [];
    // Others do not disturb, such as the dnsmasq of libvirt on a bridge of its own.
    if (port === undefined || on !== device || !["0.0.0.0", "*", "[::]", address].includes(host)) continue;
    const [, program = "another program"] = /users:\(\("([^"]+)"/.exec(line) ?? [];
    const cure = "stop that DHCP or TFTP server, or leave out --dhcp";
    throw new StartError(`UDP port ${port} is in use by ${visible(program)}: ${cure}`);
  }
}
