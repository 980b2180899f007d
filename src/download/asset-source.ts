/** Where davit fetches the assets of Profiles from: servers that the operator allows, or the store that it follows. */

import { type Ask, askServer } from "./get.ts";
import type { AssetClaim } from "./wanted-assets.ts";

export interface AssetSource {
  /** Returns the URLs of an asset. davit tries one after the other, and waits when all of them have failed. */
  readonly urlsOf: (claim: AssetClaim) => readonly URL[];
  /** Returns why davit must not request a URL; undefined if it may. */
  readonly refusalOf: (url: URL) => string | undefined;
  readonly ask: Ask;
  /** The longest wait before a retry. */
  readonly maxRetryMs: number;
}

/**
 * The servers that Profiles name, if the operator allows their hosts. Otherwise whoever may write a Profile could make
 * davit send requests to any address that it reaches.
 * @param hosts DNS names and IP addresses.
 */
export function allowedServers(hosts: readonly string[]): AssetSource {
  const allowed = new Set(hosts.map((host) => host.toLowerCase()));
  return {
    urlsOf: ({ urls }) => urls.flatMap((url) => URL.parse(url) ?? []),
    refusalOf: ({ hostname }) => {
      const host = hostname.replace(/^\[|\]$/g, "");
      return allowed.has(host) ? undefined : `--fetch-assets-from does not name the host "${host}"`;
    },
    ask: askServer,
    maxRetryMs: 3_600_000,
  };
}
