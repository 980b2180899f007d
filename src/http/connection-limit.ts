/**
 * Limits the connections of one listener. A process without a free descriptor closes new connections silently and
 * cannot open its own files. So a listener takes fewer connections than there are descriptors, and logs refused ones.
 *
 * No client may have more connections than remain free: a single client gets half. Many clients together can still take
 * all of them. If a probe fails, the process is killed. So a listener for probes makes room: it closes a connection of
 * the client with the most.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Shares } from "../lib/shares.ts";
import type { Clients, Holder } from "./client-shares.ts";

export interface ConnectionLimitOptions {
  readonly maxConnections: number;
  /** When full, closes a connection of the client with the most in favour of a client with few. */
  readonly makesRoom?: boolean;
  readonly clients: Clients;
  readonly log: Log;
  readonly clock: Clock;
  /** Called for each refused connection. */
  readonly onRefused?: () => void;
}

/** The pause between log lines: a line for each refusal would fill a disk when thousands retry. */
const quietMs = 10_000;

/** Descriptors for downloads (512 at most), the store's log, and other open files. */
const reservedFiles = 2_048;

/** Connections for supervisors, scrapers and people. */
const maxOperators = 256;

/** How long a refused connection may take to send its request, so that it gets its 503. */
const farewellMs = 1_000;
/** The share of all connections that may wait for their 503; more are closed at once. */
const farewellShare = 1 / 16;

const messages = {
  most: "connections refused: this client has as many as are left for all others. See what it keeps them for",
  files: "connections refused: the limit on open files allows no more. Raise it (ulimit -n)",
  room:
    "connections closed for others: all were taken, and this client had most. " +
    "See what it keeps them for, or keep it away (a network policy)",
} as const;

/** The listeners, named for their clients: machines, clients of the store, operators. */
export type Listener = "boot" | "store" | "ops";

/** How many connections each listener takes for this limit of open files. Machines come first. */
export function connectionsWithin(maxOpenFiles: number): Readonly<Record<Listener, number>> {
  const store = Math.floor(maxOpenFiles / 4);
  return {
    boot: Math.max(maxOpenFiles - reservedFiles - store, Math.floor(maxOpenFiles / 2)),
    store,
    ops: Math.min(Math.floor(maxOpenFiles / 16), maxOperators),
  };
}

/** A connection of a listener that makes room. */
interface Taken {
  readonly holder: Holder;
  readonly isBusy: boolean;
}

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #shares: Shares;
  /** The longest idle connection first; empty for a listener that does not make room. */
  readonly #taken = new Map<Socket, Taken>();
  /** By the address and port of the other end: with TLS a request has another socket than its connection. */
  readonly #leaving = new Set<string>();
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.maxConnections });
  }

  /** Refuses connections beyond the limit, and logs them. */
  watch(server: Server): void {
    const { maxConnections, makesRoom = false } = this.#options;
    server.on("connection", (socket: Socket) => this.#enter(socket));
    if (makesRoom) {
      server.on("request", (request, response) => this.#noteRequest(request, response));
      return;
    }
    // Node closes connections beyond its own limit before davit sees their client.
    server.maxConnections = maxConnections;
    server.on("drop", () => this.#refused("files"));
  }

  /** True for a refused connection: its request gets 503. */
  isLeaving(socket: Socket): boolean {
    return this.#leaving.size > 0 && this.#leaving.has(peerOf(socket));
  }

  #enter(socket: Socket): void {
    const holder = this.#options.clients.ofConnection(socket.remoteAddress);
    if (this.#shares.admits(holder) || this.#makeRoom(holder)) {
      this.#take(socket, holder);
      return;
    }
    this.#refused("most", holder);
    if (this.#leaving.size >= Math.max(this.#options.maxConnections * farewellShare, 1)) socket.destroy();
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
   * Closes a connection of the client with the most, if the newcomer has none yet or would still have fewer afterwards.
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

  /** Moves a connection behind all others whenever a request begins or ends. */
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

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
