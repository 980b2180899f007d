/** Hosts and ports, for options and URLs. */

import { isIPv6 } from "node:net";

/** A host and a port: to listen on, or for clients to connect to. */
export interface Address {
  /** A name or an IP address; IPv6 without brackets. */
  readonly host: string;
  /** 0 to 65535; 0 for a port that the system chooses. */
  readonly port: number;
}

/** Returns `HOST:PORT` in the form of a URL: an IPv6 address gets brackets. */
export function authority(address: Address): string {
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}

/** True for an address that only this computer can reach. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** True for an address that means every address of this computer. */
export function isWildcard(host: string): boolean {
  return host === "::" || host === "0.0.0.0";
}

/** Removes the prefix that an IPv4 address has on a listener for both IPv4 and IPv6. */
export function plainOf(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/**
 * Returns the network of one client: an IPv4 address unchanged, and for an IPv6 address its /64, the first four groups.
 * One machine can use every address of a /64.
 */
export function networkOf(address: string): string {
  const plain = plainOf(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? 0 : tail.split(":").length;
  const filled =
    tail === undefined ? groups : [...groups, ...Array<string>(Math.max(8 - groups.length - after, 0)).fill("0")];
  const all = tail === undefined || tail === "" ? filled : [...filled, ...tail.split(":")];
  return `${all.slice(0, 4).join(":")}::/64`;
}
