/**
 * Limits the connections of one listener. A process without a free descriptor loses new connections silently, and
 * cannot open its own files. So a listener takes fewer connections than there are descriptors, and logs that it refuses
 * some.
 *
 * No client may have more connections than remain free, so a single client gets at most half. Many clients together can
 * still take all of them. The operations listener must not become full, because a supervisor kills a process whose
 * probe fails. So this listener makes room: it closes a connection of the client with the most connections.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Shares } from "../lib/shares.ts";
import type { Clients, Holder } from "./client-shares.ts";

export interface ConnectionLimitOptions {
  readonly maxConnections: number;
  /**
   * If there is no room, closes a connection of the client with the most connections, in favour of a client with few.
   */
  readonly makesRoom?: boolean;
  readonly clients: Clients;
  readonly log: Log;
  readonly clock: Clock;
  /** Called for each refused connection. */
  readonly onRefused?: () => void;
}

/**
 * The shortest time between two log lines. If thousands of clients retry, a line for each refusal would fill the disk.
 */
const quietMs = 10_000;

/**
 * Descriptors for everything except connections and assets: the store's log, watches of files, the client of the API
 * server, and threads. With a small limit on open files, it is an eighth of the limit.
 */
const ownFiles = 512;

/**
 * With this many downloads, each gets 5 Mbit/s of a 10 Gbit/s link: 64 MiB take two minutes. More downloads would slow
 * all of them further. Besides the cache, downloads use at most 188 MiB: 64 large read buffers, and small ones for the
 * rest.
 */
const maxAssetStreams = 2048;

/**
 * The most assets that are opened, checked or closed at one time, beside the downloads. More would not be faster,
 * because Node has four threads for files.
 */
export const maxOpening = 64;

/** The most open files of assets. */
export const maxOpenAssets = maxAssetStreams + maxOpening;

/**
 * The most connections with TLS. Each takes 50 KiB, so all of them take 200 MiB. More handshakes would not end sooner:
 * a processor does some hundreds in a second.
 */
const maxTlsConnections = 4096;

/** The most connections of the operations listener. Supervisors, scrapers and people need few. */
const maxOperators = 256;

/** How long a refused connection stays open. A request that it sends meanwhile is answered 503. */
const farewellMs = 1_000;
/**
 * The limit on refused connections that wait for their 503, as a fraction of `maxConnections`. Any further refused
 * connection is closed immediately.
 */
const farewellShare = 1 / 16;

const messages = {
  most: "connections refused: this client has as many as are left for all others. See what it keeps them for",
  files:
    "connections refused: the listener has as many as it may. If the limit on open files is low, raise it (ulimit -n)",
  room:
    "connections closed for others: all were taken, and this client had most. " +
    "See what it keeps them for, or keep it away (a network policy)",
} as const;

/** The listeners: `boot` serves machines, `store` clients of the store, `ops` operators. */
export type Listener = "boot" | "store" | "ops";

/** How many descriptors each use may take: the connections of each listener, and the files of open assets. */
export type FileShares = Readonly<Record<Listener | "assets", number>>;

/**
 * Divides the limit on open files. Machines get the most connections. A download takes a connection and a file, so open
 * assets take at most a quarter of what machines get.
 */
export function filesWithin(maxOpenFiles: number): FileShares {
  const own = Math.min(Math.floor(maxOpenFiles / 8), ownFiles);
  const store = Math.floor(maxOpenFiles / 4);
  const ops = Math.min(Math.floor(maxOpenFiles / 16), maxOperators);
  // Refused connections of this listener are open beside the accepted ones.
  const refused = Math.ceil(ops * farewellShare);
  const ofMachines = maxOpenFiles - own - store - ops - refused;
  const assets = Math.min(Math.floor(ofMachines / 4), maxOpenAssets);
  return { boot: ofMachines - assets, store, ops, assets };
}

/**
 * Limits the connections of a listener with TLS also by the memory that they take.
 * @param threads how many threads share that memory evenly.
 */
export function withTls<Limit extends Pick<ConnectionLimitOptions, "maxConnections">>(
  limit: Limit,
  threads = 1,
): Limit {
  return { ...limit, maxConnections: Math.min(limit.maxConnections, Math.floor(maxTlsConnections / threads)) };
}

/** An accepted connection of a listener that makes room. */
interface Taken {
  readonly holder: Holder;
  /** True while a request of the connection waits for its answer. */
  readonly isBusy: boolean;
}

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #shares: Shares;
  /**
   * The accepted connections, if the listener makes room. Each moves to the end when one of its requests begins or
   * ends.
   */
  readonly #taken = new Map<Socket, Taken>();
  /**
   * Refused connections that are still open, by the peer's address and port. They cannot be found by socket: with TLS,
   * a request has another socket object than its connection.
   */
  readonly #leaving = new Set<string>();
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.maxConnections });
  }

  /** Makes a server refuse connections beyond the limit, and logs that. */
  watch(server: Server): void {
    server.on("connection", (socket: Socket) => this.#enter(socket));
    if (this.#options.makesRoom !== true) return;
    server.on("request", (request, response) => this.#noteRequest(request, response));
  }

  /** True for a refused connection that is still open: its request gets a 503. */
  isLeaving(socket: Socket): boolean {
    return this.#leaving.size > 0 && this.#leaving.has(peerOf(socket));
  }

  #enter(socket: Socket): void {
    const { maxConnections, makesRoom = false } = this.#options;
    if (!makesRoom && this.#shares.total + this.#leaving.size >= maxConnections) {
      this.#refused("files");
      socket.destroy();
      return;
    }
    const holder = this.#options.clients.ofConnection(socket.remoteAddress);
    if (this.#shares.admits(holder) || this.#makeRoom(holder)) {
      this.#take(socket, holder);
      return;
    }
    this.#refused("most", holder);
    if (this.#leaving.size >= Math.max(maxConnections * farewellShare, 1)) socket.destroy();
    else void this.#farewell(socket);
  }

  #take(socket: Socket, holder: Holder): void {
    this.#shares.add(holder, 1);
    if (this.#options.makesRoom === true) this.#taken.set(socket, { holder, isBusy: false });
    socket.once("close", () => {
      if (this.#options.makesRoom !== true || this.#taken.delete(socket)) this.#shares.release(holder);
    });
  }

  /**
   * Closes a connection of the client with the most connections, to make room for a newcomer. The newcomer must have no
   * connection yet, or still have fewer than that client.
   * @returns true if a connection was closed.
   */
  #makeRoom(newcomer: Holder): boolean {
    if (this.#options.makesRoom !== true) return false;
    const has = newcomer === undefined ? 0 : this.#shares.heldBy(newcomer);
    const [client, most] = this.#shares.largest ?? [undefined, 0];
    if (has === 0 ? most === 0 : most <= has + 1) return false;
    const [socket] = this.#longestIdleOf(client) ?? [];
    if (socket === undefined) return false;
    this.#refused("room", client);
    this.#taken.delete(socket);
    this.#shares.release(client);
    socket.destroy();
    return true;
  }

  /** The client's longest idle connection; if none is idle, the one that has waited longest for its answer. */
  #longestIdleOf(client: Holder): readonly [Socket, Taken] | undefined {
    const its = [...this.#taken].filter(([, { holder }]) => holder === client);
    return its.find(([, { isBusy }]) => !isBusy) ?? its[0];
  }

  /** Moves the request's connection to the end of `#taken`, when the request begins and when it ends. */
  #noteRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    const touch = (isBusy: boolean) => {
      const taken = this.#taken.get(socket);
      if (taken === undefined) return;
      this.#taken.delete(socket);
      this.#taken.set(socket, { ...taken, isBusy });
    };
    touch(true);
    response.once("close", () => touch(false));
  }

  async #farewell(socket: Socket): Promise<void> {
    const closed = new AbortController();
    const peer = peerOf(socket);
    this.#leaving.add(peer);
    socket.once("close", () => {
      this.#leaving.delete(peer);
      closed.abort();
    });
    await this.#options.clock.sleep(farewellMs, closed.signal);
    socket.destroy();
  }

  #refused(why: keyof typeof messages, client?: Holder): void {
    const { maxConnections, log, clock, onRefused } = this.#options;
    onRefused?.();
    this.#count++;
    if (clock.monotonicMs() - this.#loggedAtMs < quietMs) return;
    this.#loggedAtMs = clock.monotonicMs();
    const held = client === undefined ? {} : { client, connections: this.#shares.heldBy(client) };
    log.error({ count: this.#count, maxConnections, ...held }, messages[why]);
    this.#count = 0;
  }
}

/** Names a connection by the other end. With TLS, its wire and its requests have different socket objects. */
export function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
