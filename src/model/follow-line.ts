/**
 * What the store tells its followers: newline-delimited JSON, one object a line. A follower asks with the cluster, the
 * index and the run that it has, and gets either everything (`dump`) or what it lacks (`resume`):
 *
 *   {"kind":"dump","cluster":"<id>"}                forget everything; what follows is all there is
 *   {"kind":"resume","cluster":"<id>"}              keep what you have; what follows comes after it
 *   {"kind":"put","path":"…","text":"…"}            a document's new text
 *   {"kind":"delete","path":"…"}                    a document is gone
 *   {"kind":"commit","index":N,"run":"<id>"}        the lines since the last commit, or the dump's, are one step, made at N
 *   {"kind":"heartbeat","index":N,"run":"<id>"}     nothing else has changed up to N
 *
 * `run` is the start of the store that made change N. An older store has none, and neither has a store whose last change
 * was made by one: who then asks without a run gets a dump. A dump ends with a commit, too, so nobody takes half of one
 * for the whole.
 */

import { type JsonObject, parseJsonObject } from "./json.ts";

export type FollowLine =
  | { readonly kind: "dump" | "resume"; readonly cluster: string }
  | { readonly kind: "put"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | ({ readonly kind: "commit" | "heartbeat" } & FollowPlace);

/** How far a line leads. */
export interface FollowPlace {
  readonly index: number;
  readonly run?: string | undefined;
}

/** The path of the route, on the store's listener; `cluster`, `after` and `run` in its query say what a follower has. */
export const followPath = "/davit/v1/follow";

/** How often a follower hears something at least: three of them fit in the silence after which it gives up. */
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

function followLine({ kind, cluster, path, text, index, run }: JsonObject): FollowLine | undefined {
  switch (kind) {
    case "dump":
    case "resume":
      return typeof cluster === "string" && cluster !== "" ? { kind, cluster } : undefined;
    case "put":
      return typeof path === "string" && typeof text === "string" ? { kind, path, text } : undefined;
    case "delete":
      return typeof path === "string" ? { kind, path } : undefined;
    case "commit":
    case "heartbeat":
      return isIndex(index) ? { kind, index, ...(typeof run === "string" && { run }) } : undefined;
    default:
      return undefined;
  }
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
