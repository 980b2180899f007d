/**
 * Checks the `Host` header on a listener without credentials, against DNS rebinding. The owner of a web page can make
 * the page's host name resolve to davit's address. A visitor's browser then sends the page's requests to davit, with
 * the page's host name. IP addresses and `localhost` are always allowed, because no web page owns them.
 */

import { isIP } from "node:net";

export class AllowedHosts {
  readonly #names: ReadonlySet<string>;
  /** The last `Host` header that was admitted. Most clients repeat theirs, so this saves the check. */
  #admitted: string | undefined;

  /** @param names host names to allow besides IP addresses and `localhost`, in any letter case. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(["localhost", ...[...names].map((name) => name.toLowerCase())]);
  }

  /** True if davit may serve a request with this header. A missing header is admitted: every browser sends one. */
  admits(header: string | undefined): boolean {
    if (header === undefined || header === this.#admitted) return true;
    const host = hostOf(header);
    const isAllowed = isIP(host) !== 0 || this.#names.has(host);
    if (isAllowed) this.#admitted = header;
    return isAllowed;
  }
}

/** Returns the host of a `Host` header in lower case, without port and brackets; empty for a malformed header. */
export function hostOf(header = ""): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header) ?? [];
  return (bracketed ?? plain ?? "").toLowerCase();
}
