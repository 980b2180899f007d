/**
 * What the store sends its followers: newline-delimited JSON, one object a line. A follower sends the cluster, the
 * index and the run that it has, and gets either everything (`dump`) or what it lacks (`resume`):
 *
 *   {"kind":"dump","cluster":"<id>","nowMs":T}      forget everything; what follows is all there is
 *   {"kind":"resume","cluster":"<id>","nowMs":T}    keep what you have; what follows comes after it
 *   {"kind":"put","path":"…","text":"…"}            a document's new text
 *   {"kind":"delete","path":"…"}                    a document is gone
 *   {"kind":"commit","index":N,"run":"<id>"}        the lines since the last commit or dump are one step, made at N
 *   {"kind":"heartbeat","index":N,"run":"<id>","nowMs":T,"provenMs":T}
 *                                                   nothing else has changed up to N
 *
 * `run` identifies the run of the store that made change N. An older store sends none, and neither does a store whose
 * last change an older store made: a follower that then asks without a run gets a dump. A dump ends with a commit, too,
 * so half a dump never counts as a whole one.
 *
 * `nowMs` is the time on the store's monotonic clock. `provenMs` is an earlier time on it: the documents up to N match
 * the source's objects at that time. It is absent until the store has heard its source. An older store sends neither.
 */

import { type JsonObject, parseJsonObject } from "./json.ts";

export type FollowLine =
  | { readonly kind: "dump" | "resume"; readonly cluster: string; readonly nowMs?: number }
  | { readonly kind: "put"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | ({ readonly kind: "commit" } & FollowPlace)
  | ({ readonly kind: "heartbeat"; readonly nowMs?: number; readonly provenMs?: number | undefined } & FollowPlace);

/** The place that a line reaches. */
export interface FollowPlace {
  readonly index: number;
  readonly run?: string | undefined;
}

/** The route's path, on the store's listener. `cluster`, `after` and `run` in its query are what a follower has. */
export const followPath = "/davit/v1/follow";

/** The store sends a heartbeat at least this often. A follower gives up after a silence of three heartbeats. */
export const heartbeatMs = 10_000;

/** The line, with its newline. */
export function encodeFollowLine(line: FollowLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** Reads a line, without its newline; undefined for one that does not belong to the protocol. */
export function decodeFollowLine(text: string): FollowLine | undefined {
  const value = parseJsonObject(text);
  return value === undefined ? undefined : followLine(value);
}

function followLine({ kind, cluster, path, text, ...fields }: JsonObject): FollowLine | undefined {
  switch (kind) {
    case "dump":
    case "resume":
      return typeof cluster === "string" && cluster !== ""
        ? { kind, cluster, ...timesIn(fields, ["nowMs"]) }
        : undefined;
    case "put":
      return typeof path === "string" && typeof text === "string" ? { kind, path, text } : undefined;
    case "delete":
      return typeof path === "string" ? { kind, path } : undefined;
    case "commit": {
      const place = placeIn(fields);
      return place && { kind, ...place };
    }
    case "heartbeat": {
      const place = placeIn(fields);
      return place && { kind, ...place, ...timesIn(fields, ["nowMs", "provenMs"]) };
    }
    default:
      return undefined;
  }
}

function placeIn({ index, run }: JsonObject): FollowPlace | undefined {
  return isIndex(index) ? { index, ...(typeof run === "string" && { run }) } : undefined;
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function timesIn<Name extends string>(
  fields: JsonObject,
  names: readonly Name[],
): { readonly [Each in Name]?: number } {
  const times: { [Each in Name]?: number } = {};
  for (const name of names) {
    const time = fields[name];
    if (typeof time === "number") times[name] = time;
  }
  return times;
}
