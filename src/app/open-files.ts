/** How many files and connections this process may have open. */

import { readFileSync } from "node:fs";
import type { Clients } from "../http/client-shares.ts";
import { connectionsWithin, type Listener } from "../http/connection-limit.ts";

/** What `createServer` takes as `connections`; undefined where the system has no limit. */
export function connectionLimitOf(listener: Listener, clients: Clients, onRefused: () => void) {
  const openFiles = maxOpenFiles();
  return openFiles === undefined
    ? undefined
    : { maxConnections: connectionsWithin(openFiles)[listener], makesRoom: listener === "ops", clients, onRefused };
}

/** The limit as Linux tells it, which Node has raised as far as it may be; undefined where it is not told, or is none. */
export function maxOpenFiles(): number | undefined {
  try {
    return openFilesIn(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    // No Linux: nobody has thousands of machines there.
    return undefined;
  }
}

/** Reads the text of `/proc/PID/limits`: the first number is the one that counts. */
export function openFilesIn(limits: string): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}
