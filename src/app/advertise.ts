/** Chooses the address that machines use to reach davit. */

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { type Address, authority, isWildcard } from "../lib/address.ts";

/**
 * Returns the authority (`HOST:PORT`) for absolute URLs: the configured one, else the listening address. If davit
 * listens on a wildcard, the host is this computer's first address that is neither internal nor link-local, or else
 * loopback. davit prefers an IPv4 address to an IPv6 address, because more firmware supports IPv4.
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
