/** What headers say of the computer that sends a request. */

import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/**
 * Checks the `Host` header on a listener without credentials, against DNS rebinding. The owner of a web page can make
 * the page's host name resolve to davit's address. A visitor's browser then sends the page's requests to davit, with
 * the page's host name. IP addresses and `localhost` are always allowed, because no web page owns them.
 */
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

/**
 * Headers of proxies besides `X-Forwarded-*`: from standards, nginx, HAProxy, Envoy and network operators. No client
 * without a proxy sends any of them.
 */
const proxyHeaders: ReadonlySet<string> = new Set([
  "forwarded",
  "via",
  "x-real-ip",
  "x-client-ip",
  "client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "x-cluster-client-ip",
  "x-original-forwarded-for",
  "x-original-host",
  "x-envoy-external-address",
]);

/** True for a request that a proxy passed on, perhaps from another computer. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded"));
}
