/**
 * The lines that the store sends to its followers: newline-delimited JSON, one object in each line. A follower sends
 * the cluster, the index and the run of its copy. It gets either every document (`dump`) or the changes after its index
 * (`resume`):
 *
 *   {"kind":"dump","cluster":"<id>","nowMs":T}      begin a new copy: the next lines hold every document
 *   {"kind":"resume","cluster":"<id>","nowMs":T}    keep your copy: the next lines hold later changes
 *   {"kind":"put","path":"…","text":"…"}            a document's new text
 *   {"kind":"delete","path":"…"}                    a document is gone
 *   {"kind":"commit","index":N,"run":"<id>"}        the lines since the last commit or dump take effect together, at N
 *   {"kind":"heartbeat","index":N,"run":"<id>","nowMs":T,"provenMs":T}
 *                                                   nothing else has changed up to N
 *
 * `run` identifies the run of the store that made change N. A store of an older davit sends none. A store of a newer
 * davit sends none while its last change is from an older davit. A follower that asks without a run gets a dump. A dump
 * ends with a commit, too, so an incomplete dump never counts as a complete one.
 *
 * `nowMs` is the time on the store's monotonic clock. `provenMs` is an earlier time on the same clock: the documents up
 * to N match the source's objects at that time. `provenMs` is absent until the store has heard its source. A store of
 * an older davit sends neither time.
 */

import { type Decoder, lenient, number, object, parsed, text, variant, where, whole } from "../lib/shape.ts";

export type FollowLine =
  | { readonly kind: "dump" | "resume"; readonly cluster: string; readonly nowMs?: number }
  | { readonly kind: "put"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | ({ readonly kind: "commit" } & FollowPlace)
  | ({ readonly kind: "heartbeat"; readonly nowMs?: number; readonly provenMs?: number | undefined } & FollowPlace);

/** The place in the store's history up to which a copy is complete. */
export interface FollowPlace {
  readonly index: number;
  readonly run?: string | undefined;
}

/** The route's path on the store's listener. Its query describes the follower's copy: `cluster`, `after` and `run`. */
export const followPath = "/davit/v1/follow";

/** Where the store's listener sends a backup, in the format of `store/backup/format.ts`. */
export const backupPath = "/davit/v1/backup";

/** The store sends a heartbeat at least this often. A follower gives up after a silence of three heartbeats. */
export const heartbeatMs = 10_000;

/** Returns the line's text, with its newline. */
export function encodeFollowLine(line: FollowLine): string {
  return `${JSON.stringify(line)}\n`;
}

const place = { index: whole, run: lenient(text) };
const begin = object({ cluster: where(isId, "is no id"), nowMs: lenient(number) });

const followLine: Decoder<FollowLine> = variant("kind", {
  dump: begin,
  resume: begin,
  put: object({ path: text, text }),
  delete: object({ path: text }),
  commit: object(place),
  heartbeat: object({ ...place, nowMs: lenient(number), provenMs: lenient(number) }),
});

function isId(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Reads a line, without its newline; undefined for a line that is not of this protocol. */
export function decodeFollowLine(json: string): FollowLine | undefined {
  return parsed(followLine, json);
}
