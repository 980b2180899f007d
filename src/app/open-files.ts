/** How many files and connections this process may have open. */

import { readFileSync } from "node:fs";
import type { Clients } from "../http/client-shares.ts";
import { connectionsWithin, type Listener } from "../http/connection-limit.ts";

/** The `connections` option of `createServer`; undefined if the system has no limit. */
export function connectionLimitOf(listener: Listener, clients: Clients, onRefused: () => void) {
  const openFiles = maxOpenFiles();
  return openFiles === undefined
    ? undefined
    : { maxConnections: connectionsWithin(openFiles)[listener], makesRoom: listener === "ops", clients, onRefused };
}

/** The limit that Linux reports, which Node has raised as far as allowed; undefined without one. */
export function maxOpenFiles(): number | undefined {
  try {
    return openFilesIn(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    // Not Linux: nobody serves thousands of machines there.
    return undefined;
  }
}

/** Reads the text of `/proc/PID/limits`: the first number is the soft limit, which applies. */
export function openFilesIn(limits: string): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}
