/** IPv4 addresses as text and as numbers, for ranges and networks. */

import { isIPv4 } from "node:net";

/** The addresses that a DHCP server gives to machines. */
export interface AddressRange {
  /** The first address. */
  readonly from: string;
  /** The last address, not below the first one. */
  readonly to: string;
  /** The router that machines learn; undefined: none. */
  readonly router: string | undefined;
}

/** Returns an address as a number from 0 to 2^32 - 1; undefined for a text that is no IPv4 address. */
export function ipv4Number(text: string): number | undefined {
  return isIPv4(text) ? text.split(".").reduce((number, part) => number * 256 + Number(part), 0) : undefined;
}

/** Returns the number as an address. @param number from 0 to 2^32 - 1. */
export function ipv4Text(number: number): string {
  return [24, 16, 8, 0].map((bits) => (number >>> bits) & 0xff).join(".");
}
