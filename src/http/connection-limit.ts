/**
 * An end to how many connections one listener takes. A process without a free descriptor closes new connections unseen:
 * neither Node nor the system says a word, and its own files cannot be opened any more. So a listener for many takes
 * fewer than there are descriptors, and tells of those that it turns away.
 *
 * No client may have more of them than are left free: one alone gets half, and others always find room.
 */

import type { Server, Socket } from "node:net";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { Shares } from "../lib/shares.ts";
import type { Clients } from "./client-shares.ts";

export interface ConnectionLimitOptions {
  readonly maxConnections: number;
  readonly clients: Clients;
  readonly log: Log;
  readonly clock: Clock;
  /** Called for each connection that is turned away. */
  readonly onRefused?: () => void;
}

/** A line for each would fill a disk when thousands come again and again. */
const quietMs = 10_000;

/** For downloads, the store's log, and whatever else is open: beside 512 downloads, this is ample. */
const reservedFiles = 2_048;

/** Supervisors, scrapers and people. */
const maxOperators = 256;

/** How long a refused connection may take to send its request, to get its 503. */
const farewellMs = 1_000;
/** The share of all connections that may wait for their 503; more are closed at once. */
const farewellShare = 1 / 16;

/** The listeners, by who asks there: machines, clients of the store, operators. */
export type Listener = "boot" | "store" | "ops";

/** How many connections each listener takes where the process may open so many files. Machines come first. */
export function connectionsWithin(maxOpenFiles: number): Readonly<Record<Listener, number>> {
  const store = Math.floor(maxOpenFiles / 4);
  return {
    boot: Math.max(maxOpenFiles - reservedFiles - store, Math.floor(maxOpenFiles / 2)),
    store,
    ops: Math.min(Math.floor(maxOpenFiles / 16), maxOperators),
  };
}

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #shares: Shares;
  /** By the address and port of the other end: with TLS a request has another socket than its connection. */
  readonly #leaving = new Set<string>();
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.maxConnections });
  }

  /** Turns away what comes beyond the limit, and says so. */
  watch(server: Server): void {
    const { maxConnections } = this.#options;
    server.maxConnections = maxConnections;
    server.on("drop", () => this.#refused("connections refused, the limit on open files allows no more: raise it"));
    server.on("connection", (socket: Socket) => this.#enter(socket));
  }

  /** True for a connection that is turned away: its request is answered 503. */
  isLeaving(socket: Socket): boolean {
    return this.#leaving.size > 0 && this.#leaving.has(peerOf(socket));
  }

  #enter(socket: Socket): void {
    const holder = this.#options.clients.ofConnection(socket.remoteAddress);
    if (this.#shares.take(holder)) {
      socket.once("close", () => this.#shares.release(holder));
      return;
    }
    this.#refused("connections refused, one address has as many as are left for all others");
    if (this.#leaving.size >= Math.max(this.#options.maxConnections * farewellShare, 1)) socket.destroy();
    else void this.#farewell(socket);
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

  #refused(what: string): void {
    const { maxConnections, log, clock, onRefused } = this.#options;
    onRefused?.();
    this.#count++;
    if (clock.monotonicMs() - this.#toldAtMs < quietMs) return;
    this.#toldAtMs = clock.monotonicMs();
    log.error({ count: this.#count, maxConnections }, what);
    this.#count = 0;
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
