/**
 * The hosts that a request may name on a listener without credentials. A web page can make its own name resolve to this
 * address, and its visitor's browser then sends that name. No web page owns an IP address or `localhost`.
 */

import { isIP } from "node:net";

export class AllowedHosts {
  readonly #names: ReadonlySet<string>;
  /** The last `Host` that was admitted: most clients always send the same one. */
  #admitted: string | undefined;

  /** @param names allowed besides IP addresses and `localhost`, in any letter case. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(["localhost", ...[...names].map((name) => name.toLowerCase())]);
  }

  /** True for a `Host` header that may be served. Browsers always send one; only other programs leave it out. */
  admits(header: string | undefined): boolean {
    if (header === undefined || header === this.#admitted) return true;
    const host = hostOf(header);
    const isAllowed = isIP(host) !== 0 || this.#names.has(host);
    if (isAllowed) this.#admitted = header;
    return isAllowed;
  }
}

/** The host of a `Host` header in lower case, without port and brackets; empty for a malformed header. */
export function hostOf(header = ""): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header) ?? [];
  return (bracketed ?? plain ?? "").toLowerCase();
}
