/**
 * An end to how many connections one listener takes. A process without a free descriptor closes new connections unseen:
 * neither Node nor the system says a word, and its own files cannot be opened any more. So a listener for many takes
 * fewer than there are descriptors, and tells of those that it turns away.
 */

import type { Server } from "node:net";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";

export interface ConnectionLimitOptions {
  readonly maxConnections: number;
  readonly log: Log;
  readonly clock: Clock;
  /** Called for each connection that is turned away. */
  readonly onRefused?: () => void;
}

/** A line for each would fill a disk when thousands come again and again. */
const quietMs = 10_000;

/** For downloads, the store's log and clients, followers, and whatever else is open: beside 512 downloads, this is ample. */
const reservedFiles = 2_048;

/** How many connections machines may have where the process may open so many files. */
export function connectionsWithin(maxOpenFiles: number): number {
  return Math.max(maxOpenFiles - reservedFiles, Math.floor(maxOpenFiles / 2));
}

/** Turns away what comes beyond the limit, and says so. */
export function limitConnections(server: Server, options: ConnectionLimitOptions): void {
  const { maxConnections, log, clock, onRefused } = options;
  server.maxConnections = maxConnections;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let count = 0;
  server.on("drop", () => {
    onRefused?.();
    count++;
    if (clock.monotonicMs() - toldAtMs < quietMs) return;
    toldAtMs = clock.monotonicMs();
    log.error({ count, maxConnections }, "connections refused, the limit on open files allows no more: raise it");
    count = 0;
  });
}
