/** Hosts and ports, for options and URLs. */

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
