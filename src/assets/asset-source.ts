/** Where davit fetches the assets of Profiles from: servers that the operator allows, or the store that it follows. */

import { type LookupOptions, lookup } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { type Address, authority } from "../lib/text/address.ts";
import { type Ask, askServer, DownloadError } from "./get.ts";
import type { AssetDemand } from "./profile-asset-index.ts";

export interface AssetSource {
  /** Returns the URLs of an asset. davit tries one after the other, and waits when all of them have failed. */
  readonly urlsOf: (demand: AssetDemand) => readonly URL[];
  /** Returns why davit must not request a URL; undefined if it may. */
  readonly refusalOf: (url: URL) => string | undefined;
  readonly ask: Ask;
  /** The longest wait before a retry. */
  readonly maxRetryMs: number;
}

/**
 * The servers that Profiles name, if the operator allows them. Otherwise whoever may write a Profile could make davit
 * send requests to any address that it reaches.
 * @param servers DNS names and IP addresses, with their ports.
 * @param ownPorts of davit's own listeners: these trust requests that come from their own computer.
 */
export function allowedServers(servers: readonly Address[], ownPorts: readonly number[] = []): AssetSource {
  const allowed = new Set(servers.map((server) => serverOf(new URL(`http://${authority(server)}`), server.port)));
  const isListening = (url: URL) => ownPorts.includes(portOf(url));
  return {
    urlsOf: ({ urls }) => urls.flatMap((url) => URL.parse(url) ?? []),
    refusalOf: (url) => {
      const server = serverOf(url, portOf(url));
      if (!allowed.has(server)) return `--fetch-assets-from does not name "${server}"`;
      return isListening(url) && isOwn(url.hostname.replace(/^\[|\]$/g, "")) ? ownListener : undefined;
    },
    // The check of a name's addresses is part of the connection, because a name can change its addresses.
    ask: (url, options) => askServer(url, isListening(url) ? { ...options, lookup: lookupOthers } : options),
    maxRetryMs: 3_600_000,
  };
}

const ownListener = "davit itself listens there: name another server";

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

/** An address as a URL writes it has one spelling. */
function serverOf({ hostname }: URL, port: number): string {
  return `${hostname}:${port}`;
}

/** True for an IP address of this computer. */
function isOwn(host: string): boolean {
  if (isIP(host) === 0) return false;
  const own = new BlockList();
  own.addSubnet("127.0.0.0", 8);
  own.addSubnet("0.0.0.0", 8);
  for (const address of ["::", "::1"]) own.addAddress(address, "ipv6");
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((each) => each ?? [])) {
    own.addAddress(address, family === "IPv6" ? "ipv6" : "ipv4");
  }
  return own.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

const lookupOthers: LookupFunction = (host, options: LookupOptions, done) => {
  lookup(host, options, (error, found, family) => {
    const addresses = typeof found === "string" ? [found] : (found ?? []).map(({ address }) => address);
    const refused = addresses.some(isOwn) ? new DownloadError(ownListener) : null;
    done(error ?? refused, found, family);
  });
};
