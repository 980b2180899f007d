/** Chooses the addresses that machines use to reach davit. */

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { type Address, authority, isWildcard } from "../../lib/text/address.ts";

/**
 * Returns the address for absolute URLs: the configured one, else the listening address. If davit listens on a
 * wildcard, the host is this computer's first address that is neither internal nor link-local, or else loopback. davit
 * prefers an IPv4 address to an IPv6 address, because more firmware supports IPv4.
 */
export function advertisedAddress(
  given: Address | undefined,
  listening: Address,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): Address {
  if (given !== undefined) return given;
  if (!isWildcard(listening.host)) return listening;
  const global = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !isLinkLocal(address));
  const first = global.find(({ family }) => family === "IPv4") ?? global[0];
  return { host: first?.address ?? "127.0.0.1", port: listening.port };
}

/** Returns `advertisedAddress` as `HOST:PORT`. */
export function advertisedAuthority(...addresses: Parameters<typeof advertisedAddress>): string {
  return authority(advertisedAddress(...addresses));
}

interface AdvertisedOptions {
  readonly advertiseAddress: Address | undefined;
  readonly advertiseTlsAddress: Address | undefined;
}

/** Returns the address for HTTPS: the configured one, else the host of the one for HTTP with the listening port. */
export function advertisedTlsAddress(
  { advertiseAddress, advertiseTlsAddress }: AdvertisedOptions,
  listening: Address,
): Address {
  const beside = advertiseAddress && { host: advertiseAddress.host, port: listening.port };
  return advertisedAddress(advertiseTlsAddress ?? beside, listening);
}

function isLinkLocal(address: string): boolean {
  return /^(169\.254\.|fe80:)/i.test(address);
}
