/** Hosts and ports, as options name them and as URLs spell them. */

/** A host and a port to listen on or to be reached at. */
export interface Address {
  /** Name or IP literal, IPv6 without brackets. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** `HOST:PORT` as it stands in a URL. */
export function authority(address: Address): string {
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** True for an address that stands for every address of this machine. */
export function isWildcard(host: string): boolean {
  return host === "::" || host === "0.0.0.0";
}
