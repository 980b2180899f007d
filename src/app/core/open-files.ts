/** Limits the connections of each listener, and the open assets, by the number of files that this process may open. */

import { readFileSync } from "node:fs";
import type { Clients } from "../../http/client-shares.ts";
import { type FileShares, filesWithin, type Listener } from "../../http/connection-limit.ts";
import { socketsOfCrowd } from "../../http/listen.ts";

/** A server that machines use has these sockets to listen, and its thread has up to as many other files. */
const filesOfServer = 2 * socketsOfCrowd;

/**
 * Returns the `connections` option of `createServer`; undefined if the number of open files has no known limit.
 * @param servers how many servers share the listener's connections evenly.
 */
export function connectionLimitOf(listener: Listener, clients: Clients, onRefused: () => void, servers = 1) {
  const openFiles = maxOpenFiles();
  return openFiles === undefined
    ? undefined
    : {
        maxConnections: connectionsWithin(openFiles, listener, servers),
        makesRoom: listener === "ops",
        clients,
        onRefused,
      };
}

/** Returns the most connections of one server, if this many servers share what a listener may take. */
export function connectionsWithin(openFiles: number, listener: Listener, servers: number): number {
  const files = Math.floor(filesWithin(openFiles)[listener] / servers);
  return Math.max(files - (listener === "boot" ? filesOfServer : 0), 1);
}

/** One file that davit opens, and one that it sends. */
const leastAssetFiles = 2;

/**
 * Returns the most open files of assets; undefined if the number of open files has no known limit.
 * @param threads how many threads share this number evenly.
 */
export function maxAssetFiles(threads: number): FileShares["assets"] | undefined {
  const openFiles = maxOpenFiles();
  return openFiles === undefined
    ? undefined
    : Math.max(Math.floor(filesWithin(openFiles).assets / threads), leastAssetFiles);
}

/** Returns how many files this process may open; undefined if unlimited or unknown. Node raises this limit at start. */
export function maxOpenFiles(): number | undefined {
  try {
    return openFilesIn(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    // Only Linux has this file. Elsewhere davit runs without a limit: nobody serves thousands of machines there.
    return undefined;
  }
}

/** Returns the soft limit, which is the one in force, from the text of `/proc/PID/limits`. */
export function openFilesIn(limits: string): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}
