/** Chooses davit's address for machines, unless one is configured. */

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { type Address, authority, isWildcard } from "../lib/address.ts";

/**
 * The authority for absolute addresses: the configured one, else the listening address. For a wildcard it is this
 * machine's first global address, IPv4 before IPv6 because more firmware speaks it; loopback on a machine without any.
 */
export function advertisedAuthority(
  given: Address | undefined,
  listening: Address,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string {
  if (given !== undefined) return authority(given);
  if (!isWildcard(listening.host)) return authority(listening);
  const global = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !isLinkLocal(address));
  const first = global.find(({ family }) => family === "IPv4") ?? global[0];
  return authority({ host: first?.address ?? "127.0.0.1", port: listening.port });
}

function isLinkLocal(address: string): boolean {
  return /^(169\.254\.|fe80:)/i.test(address);
}
