/** Checks before dnsmasq starts: the interface, the range, davit's rights, and the UDP ports. */

import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { codeOf } from "../lib/errors.ts";
import { StartError } from "../lib/start-error.ts";
import { type AddressRange, ipv4Number, ipv4Text } from "../lib/text/ipv4.ts";
import { visible } from "../lib/text/visible.ts";

/** The network of an interface. */
export interface MachineNetwork {
  readonly device: string;
  /** The computer's own IPv4 address there. */
  readonly address: string;
  /** The address of the network itself, such as 192.168.1.0. */
  readonly subnet: string;
  /** The length of the prefix, in bits. */
  readonly prefix: number;
}

/** An IPv4 address of an interface. */
export interface DeviceAddress {
  readonly device: string;
  readonly address: string;
  readonly prefix: number;
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

/** @throws {StartError} if another program of this computer has one of the ports that dnsmasq opens. */
export async function assertPortsFree({ device, address }: MachineNetwork, isProxy: boolean): Promise<void> {
  const ports = [
    { port: 67, host: "0.0.0.0" },
    { port: 69, host: address },
    ...(isProxy ? [{ port: 4011, host: "0.0.0.0" }] : []),
  ];
  for (const { port, host } of ports) {
    const code = await bindCode(port, host);
    if (code === undefined) continue;
    const users = code === "EADDRINUSE" ? await usersOf(port) : [];
    const others = users.filter(({ on }) => on === undefined || on === device);
    // Such as the dnsmasq of libvirt on a bridge of its own.
    if (users.length > 0 && others.length === 0) continue;
    const names = [...new Set(others.flatMap(({ program }) => (program === undefined ? [] : [program])))].join(", ");
    throw new StartError(
      code === "EADDRINUSE"
        ? `UDP port ${port} is in use${names && ` by ${names}`}: stop that DHCP or TFTP server, or leave out --dhcp`
        : `Cannot open UDP port ${port} on ${host} (${code}): --dhcp needs it`,
    );
  }
}

/** Returns the code of the error when a port is opened; undefined if it is free. */
async function bindCode(port: number, host: string): Promise<string | undefined> {
  const socket = createSocket("udp4");
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  socket.once("error", (error) => resolve(codeOf(error) ?? "unknown error"));
  socket.bind({ port, address: host, exclusive: true }, () => resolve(undefined));
  const code = await promise;
  socket.close();
  return code;
}

interface PortUser {
  /** The interface that its socket is bound to; undefined: all. */
  readonly on: string | undefined;
  readonly program: string | undefined;
}

/** Asks `ss` who has a UDP port; empty where `ss` is missing. */
async function usersOf(port: number): Promise<readonly PortUser[]> {
  try {
    const { stdout } = await promisify(execFile)("ss", ["-Hulnp4", `sport = :${port}`], atSystem);
    const lines = stdout.split("\n").filter((line) => line !== "");
    return lines.map((line) => {
      const [, on] = /\s\S+%(\S+):\d+\s/.exec(line) ?? [];
      const [, program] = /users:\(\("([^"]+)"/.exec(line) ?? [];
      return { on, program: program === undefined ? undefined : visible(program) };
    });
  } catch {
    return [];
  }
}
