/**
 * Names the client of a connection or a request, for limits by client. A client is an IPv4 address or an IPv6 /64
 * network, because one machine can use every address of a /64.
 */

import type { IncomingMessage } from "node:http";
import { type BlockList, isIP, isIPv6 } from "node:net";
import { networkOf, plainOf } from "../lib/text/address.ts";

interface ClientsOptions {
  /** Addresses without a limit by client, such as the address of a NAT. */
  readonly exempt?: BlockList | undefined;
  /** Proxies whose `X-Forwarded-For` davit trusts. */
  readonly trustedProxies?: BlockList | undefined;
}

/**
 * The name under which davit counts what a client uses of something limited, such as connections or memory (`Shares`).
 * Undefined for a client without a limit of its own: only the limit for all clients together applies to it.
 */
export type Holder = string | undefined;

export class Clients {
  readonly #exempt: BlockList | undefined;
  readonly #proxies: BlockList | undefined;

  constructor({ exempt, trustedProxies }: ClientsOptions = {}) {
    this.#exempt = exempt;
    this.#proxies = trustedProxies;
  }

  /** The holder of a connection; undefined for a trusted proxy, because its connections carry many clients. */
  ofConnection(address = ""): Holder {
    return includes(this.#proxies, address) ? undefined : this.#holderOf(address);
  }

  /**
   * The holder of a request: its sender. If the sender is a trusted proxy, the holder is the last address in
   * `X-Forwarded-For` that is not a trusted proxy.
   */
  ofRequest(request: IncomingMessage): Holder {
    return this.#holderOf(this.#senderOf(request) ?? request.socket.remoteAddress ?? "");
  }

  /**
   * The whole address of the sender, found as in `ofRequest`; undefined if a trusted proxy names none. A proxy's own
   * address is nobody's: all of its clients would pass for one machine.
   */
  addressOf(request: IncomingMessage): string | undefined {
    const address = plainOf(this.#senderOf(request) ?? "");
    return isIP(address) === 0 ? undefined : address;
  }

  /** True if a trusted proxy sends the request. */
  isFromProxy({ socket }: IncomingMessage): boolean {
    return includes(this.#proxies, socket.remoteAddress ?? "");
  }

  /** Undefined if a trusted proxy names no client. */
  #senderOf({ socket, headers }: IncomingMessage): string | undefined {
    const peer = socket.remoteAddress ?? "";
    if (!includes(this.#proxies, peer)) return peer;
    const forwarded = String(headers["x-forwarded-for"] ?? "").split(",");
    const addresses = forwarded.map((text) => text.trim()).filter((text) => text !== "");
    return addresses.findLast((text) => !includes(this.#proxies, text));
  }

  #holderOf(address: string): Holder {
    return includes(this.#exempt, address) ? undefined : networkOf(address);
  }
}

function includes(list: BlockList | undefined, address: string): boolean {
  return list?.check(plainOf(address), isIPv6(plainOf(address)) ? "ipv6" : "ipv4") === true;
}
