/**
 * The connections to the API server: one pool for short calls and one for watches, so that neither waits for the other.
 * davit uses HTTP/1.1, because with HTTP/2 one stalled stream would block its whole connection.
 *
 * When the certificates or the certificate authority change, new requests use new connections. Running requests end on
 * the old connections.
 */

import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import type { Headers } from "./api-error.ts";
import type { ClientTlsMaterial } from "./kube-config.ts";

interface OutgoingRequest {
  readonly url: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request and the body of its answer. */
  readonly signal: AbortSignal;
  readonly use: "call" | "watch";
  readonly tls: ClientTlsMaterial;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AsyncIterable<Buffer>;
}

// A first sync writes hundreds of statuses a second. This many connections are enough for it.
const maxCallConnections = 16;
// Shorter than the idle time-outs of load balancers, which can be 60 s. client-go uses the same delay.
const keepAliveInitialDelayMs = 30_000;
const connectTimeoutMs = 10_000;
const idleConnectionMs = 30_000;

interface Pools {
  readonly tlsKey: string;
  readonly call: Dispatcher;
  readonly watch: Dispatcher;
}

export class ConnectionPool {
  readonly #proxy: string | undefined;
  #pools: Pools | undefined;
  readonly #retiring = new Set<Promise<void>>();

  constructor({ proxy }: { readonly proxy?: string | undefined }) {
    this.#proxy = proxy;
  }

  /**
   * Sends a request. Resolves when the head of the answer is there; the body follows as a stream.
   * @throws the network's or the signal's error.
   */
  async send({ url, method, headers, body, signal, use, tls }: OutgoingRequest): Promise<HttpAnswer> {
    const dispatcher = this.#poolsFor(tls)[use];
    const answer = await request(url, {
      dispatcher,
      method,
      headers,
      signal,
      // The caller sets time-outs, on its own clock.
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(body !== undefined && { body }),
    });
    return { status: answer.statusCode, headers: answer.headers, body: buffers(answer.body) };
  }

  /** Cuts every connection; idempotent. */
  async stop(): Promise<void> {
    const pools = this.#pools;
    this.#pools = undefined;
    await Promise.all([pools?.call.destroy(), pools?.watch.destroy(), ...this.#retiring]);
  }

  #poolsFor(tls: ClientTlsMaterial): Pools {
    const tlsKey = JSON.stringify(tls);
    if (this.#pools?.tlsKey === tlsKey) return this.#pools;
    if (this.#pools !== undefined) this.#retire(this.#pools);
    this.#pools = { tlsKey, call: this.#pool(tls, maxCallConnections), watch: this.#pool(tls, null) };
    return this.#pools;
  }

  #pool(tls: ClientTlsMaterial, connections: number | null): Dispatcher {
    const keepAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveInitialDelayMs, timeout: connectTimeoutMs };
    const shared = { allowH2: false, connections, keepAliveTimeout: idleConnectionMs };
    if (this.#proxy === undefined) return new Agent({ ...shared, connect: { ...tls, ...keepAlive } });
    return new ProxyAgent({ ...shared, uri: this.#proxy, requestTls: tls, connect: keepAlive });
  }

  /** Closes old connections when their requests end: a watch ends within ten minutes, a call within its time-out. */
  #retire({ call, watch }: Pools): void {
    const closing = Promise.all([call.close(), watch.close()]).then(() => void this.#retiring.delete(closing));
    this.#retiring.add(closing);
  }
}

async function* buffers(body: AsyncIterable<unknown>): AsyncIterable<Buffer> {
  for await (const chunk of body) if (Buffer.isBuffer(chunk)) yield chunk;
}
