/** A way to the API server of a test cluster that misbehaves as it is told: davit talks plain HTTP to it. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout } from "node:timers/promises";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";

/** What a request asks for. */
export interface Asked {
  readonly method: string;
  /** With its query. */
  readonly path: string;
}

/** A status to answer with instead, `cut` to close the connection, undefined to pass it on. */
export type Fault = (asked: Asked) => number | "cut" | undefined;

/** The version that lists show, and what ends the silence of watches. */
interface Past {
  readonly version: string;
  readonly ended: PromiseWithResolvers<void>;
}

export class FaultProxy {
  /** Every request so far. */
  readonly asked: Asked[] = [];
  readonly #cluster: ClusterAccess;
  readonly #agent: Agent;
  readonly #server: Server;
  #fault: Fault = () => undefined;
  #lineMs = 0;
  #past: Past | undefined;

  private constructor(cluster: ClusterAccess) {
    this.#cluster = cluster;
    this.#agent = new Agent({ ca: cluster.ca, keepAlive: true });
    this.#server = createServer((incoming, outgoing) => void this.#take(incoming, outgoing));
  }

  static async start(cluster: ClusterAccess): Promise<FaultProxy> {
    const proxy = new FaultProxy(cluster);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** From now on. */
  misbehave(fault: Fault): void {
    this.#fault = fault;
  }

  /** Closes every connection that is open, and from now on each new one, until it misbehaves otherwise. */
  disconnect(): void {
    this.#fault = () => "cut";
    this.#server.closeAllConnections();
  }

  /** From now on each watch, even one that is open, brings one line in this time, as a slow connection does. */
  slowWatches(lineMs: number): void {
    this.#lineMs = lineMs;
  }

  /**
   * From now on, every list shows the collection as it was at this version, as a cache on the way would, and watches
   * bring nothing. Writes pass.
   */
  showPast(version: string): void {
    this.#past = { version, ended: Promise.withResolvers() };
  }

  behave(): void {
    this.#fault = () => undefined;
    this.#lineMs = 0;
    this.#past?.ended.resolve();
    this.#past = undefined;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/", headers } = incoming;
    this.asked.push({ method, path });
    const fault = this.#fault({ method, path });
    if (fault === "cut") {
      outgoing.destroy();
      return;
    }
    if (fault !== undefined) {
      outgoing.writeHead(fault, { "content-type": "application/json" }).end('{"kind":"Status"}');
      return;
    }
    const { host: _, ...own } = headers;
    const options = { method, headers: own, agent: this.#agent };
    const onward = request(this.#target(method, path), options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      // A watch's head is to be there before its first event.
      outgoing.flushHeaders();
      // Whichever side goes first, the other one is closed.
      const isWatch = path.includes("watch=1");
      const passed = isWatch ? pipeline(answer, (lines) => this.#slowly(lines), outgoing) : pipeline(answer, outgoing);
      passed.catch(() => {});
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    await pipeline(incoming, onward).catch(() => {});
  }

  #target(method: string, path: string): URL {
    const url = new URL(path, this.#cluster.server);
    const isList = method === "GET" && url.searchParams.has("limit") && !url.searchParams.has("continue");
    if (this.#past === undefined || !isList) return url;
    url.searchParams.set("resourceVersion", this.#past.version);
    url.searchParams.set("resourceVersionMatch", "Exact");
    return url;
  }

  async *#slowly(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) {
        const end = chunk.indexOf("\n", at) + 1 || chunk.length;
        await this.#past?.ended.promise;
        await setTimeout(this.#lineMs);
        yield chunk.subarray(at, end);
        at = end;
      }
    }
  }
}
