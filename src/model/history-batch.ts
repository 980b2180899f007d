/**
 * How followers hand the requests that they answered to the history of their writer, over the store's listener:
 *
 *   POST /davit/v1/history   {"via": "pod-1", "run": "...", "first": 7, "dropped": 0,
 *                            "agoMs": [12.5, ...], "requests": [[...], ...]}
 *
 * The answer is {"taken": N}: the follower need not send the first N of these requests again. A request that the writer
 * cannot read counts as taken. The history only shows: no decision reads it. So a follower, or whoever has its
 * credentials, can open nothing by it.
 */

import { type Decoder, list, number, object, parsed, where, whole } from "../lib/shape.ts";
import type { JsonValue } from "./json.ts";

export const historyPath = "/davit/v1/history";

/** Requests that a follower answered, in the order in which it recorded them. */
export interface HistoryBatch {
  /** The follower's name. */
  readonly via: string;
  /** Random, of this run of the follower. With `first`, the writer recognizes requests that it has taken before. */
  readonly run: string;
  /** The number of the first request. Each later one has the next number. */
  readonly first: number;
  /** How many requests the follower has dropped in this run, because it could not hand them on. */
  readonly dropped: number;
  /** How long ago each request began. The batch has no times, because the clocks of two computers differ. */
  readonly agoMs: readonly number[];
  /** As `history/journal-line.ts` encodes them. */
  readonly requests: readonly JsonValue[];
}

/** The most requests of one batch. */
export const maxBatchRequests = 512;
/** The most bytes of one batch. */
export const maxBatchBytes = 256 * 1024;

/** What a follower may be called, such as the name of its pod. */
export const followerName = /^[A-Za-z\d][\w.-]{0,252}$/;
const runForm = /^[\da-f]{16,64}$/;

/** Returns a body for `historyPath`. @param texts the requests, each as JSON. */
export function encodeHistoryBatch(
  { via, run, first, dropped, agoMs }: Omit<HistoryBatch, "requests">,
  texts: readonly string[],
): string {
  const head = JSON.stringify({ via, run, first, dropped, agoMs: agoMs.map((ms) => Math.round(ms * 10) / 10) });
  return `${head.slice(0, -1)},"requests":[${texts.join(",")}]}`;
}

/** Reads the envelope of a body. @returns undefined for any other text, and for too many requests. */
export function decodeHistoryBatch(text: string): HistoryBatch | undefined {
  const batch = parsed(batchShape, text);
  if (batch === undefined || batch.requests.length > maxBatchRequests) return undefined;
  return batch.requests.length === batch.agoMs.length ? batch : undefined;
}

const batchShape: Decoder<HistoryBatch> = object({
  via: where(
    (value): value is string => typeof value === "string" && followerName.test(value),
    "is no name of a follower",
  ),
  run: where((value): value is string => typeof value === "string" && runForm.test(value), "is no run"),
  first: whole,
  dropped: whole,
  agoMs: list(number),
  requests: list((value) => value as JsonValue),
});
