/**
 * Proves that davit's copy of a collection shows the API server's state at a known time.
 *
 * A line of a watch is no proof, even if it arrives now: a connection may deliver old lines late, and an API server
 * that is cut off from its etcd sends bookmarks of an old state. So davit asks for the newest version, which is a
 * quorum read. The copy is proven for the time of this question as soon as davit knows every change up to this version.
 * Three ways lead there, the cheapest first (decision 0022):
 *
 * - The watch has already delivered this version, or a later one.
 * - The answer is the whole collection: davit compares it with the copy.
 * - A second, short watch shows which changes came since the last version that the first watch has delivered.
 */

import type { Clock } from "../../../lib/clock.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../../model/json.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import { readMeta } from "./mirror.ts";
import { isOlder } from "./seen-versions.ts";
import { type WatchEvent, watchEvents } from "./watch-events.ts";
import { toWatchFailure, WatchFailure, type WatchFailureReason } from "./watch-failure.ts";

/** `rewound`: the API server's newest version is older than one that davit had seen before the question. */
export type Proof = "proven" | "unproven" | "rewound";

interface ProofOptions {
  readonly client: Pick<ApiClient, "json" | "watch">;
  /** Makes a request for the collection. */
  readonly request: (query: Readonly<Record<string, string>>) => ApiRequest;
  /** How many objects the question asks for. An answer that has all is a proof by itself. */
  readonly limit: number;
  readonly clock: Clock;
  /** Returns the newest version that the watch has delivered. */
  readonly delivered: () => string;
  /** True if the copy has exactly these objects. */
  readonly holds: (objects: readonly JsonObject[]) => boolean;
  /** How long the second watch lasts; 0 for no second watch. */
  readonly lookSeconds: number;
  readonly maxLineBytes: number;
}

/** The API server sends a bookmark two seconds before the end that a watch has asked for, and a second late at most. */
const lookSeconds = { min: 3, max: 8 };
const lateMs = 1_000;

/**
 * Returns how long a second watch lasts at most.
 * @param proveMs the time between two questions, in milliseconds.
 * @returns 0 if there is no time for a second watch.
 */
export function lookSecondsFor(proveMs: number): number {
  const seconds = Math.floor(proveMs / 2_000);
  return seconds < 1 ? 0 : Math.min(Math.max(seconds, lookSeconds.min), lookSeconds.max);
}

/**
 * Asks for a proof. Its time is the time of this call.
 * @throws {ApiError | WatchFailure} if the API server does not answer.
 */
export async function proofOf(options: ProofOptions): Promise<Proof> {
  const { client, request, limit, delivered, holds } = options;
  const question = request({ limit: String(limit) });
  // While davit waits for the answer, the watch may deliver a later change.
  const deliveredBefore = delivered();
  const { metadata, items } = await client.json({ ...question, retries: 0 });
  const { resourceVersion: newest, continue: more } = objectOf(metadata);
  if (typeof newest !== "string") throw new ApiError("protocol", { what: "the answer is no list" });
  if (isOlder(newest, deliveredBefore)) return "rewound";
  if (reaches(delivered(), newest)) return "proven";
  const isWhole = more === undefined || more === "";
  if (isWhole && Array.isArray(items)) return holds(items.filter(isJsonObject)) ? "proven" : "unproven";
  return (await isDelivered(newest, options)) ? "proven" : "unproven";
}

/** True if the first watch has delivered every change up to this version. */
async function isDelivered(newest: string, options: ProofOptions): Promise<boolean> {
  const { delivered, lookSeconds: seconds } = options;
  const lastChange = seconds === 0 ? undefined : await lookFor(newest, options);
  const now = delivered();
  return reaches(now, newest) || (lastChange !== undefined && reaches(now, lastChange));
}

/**
 * Like `lastChangeUpTo`. Undefined also if the second watch brings nothing, or the API server's history begins later.
 * Only a list can help then. After another failure of the API server, a list would make things worse.
 */
async function lookFor(newest: string, options: ProofOptions): Promise<string | undefined> {
  try {
    return await lastChangeUpTo(newest, options);
  } catch (thrown) {
    const failure = toWatchFailure(thrown);
    if (failure instanceof WatchFailure && isForList.has(failure.reason)) return undefined;
    throw failure;
  }
}

const isForList: ReadonlySet<WatchFailureReason> = new Set(["silent", "overdue", "expired"]);

/**
 * Watches from the delivered version on. @returns the version of the last change up to `newest`; without a change, the
 * delivered version. Undefined if the watch did not reach `newest`: the state that it shows may be older.
 */
async function lastChangeUpTo(newest: string, options: ProofOptions): Promise<string | undefined> {
  const { client, request, clock, delivered, lookSeconds: seconds, maxLineBytes } = options;
  let last = delivered();
  const query = {
    watch: "1",
    allowWatchBookmarks: "true",
    resourceVersion: last,
    timeoutSeconds: String(seconds),
  };
  const durationMs = seconds * 1_000 + lateMs;
  const limits = { silenceMs: durationMs, maxDurationMs: durationMs, maxLineBytes };
  for await (const events of watchEvents({ client, request: request(query), clock, ...limits, onHeard: () => {} })) {
    for (const event of events) {
      const version = versionOf(event);
      if (event.kind !== "bookmark" && !isOlder(newest, version)) last = version;
      if (reaches(version, newest)) return last;
    }
  }
  return undefined;
}

function versionOf(event: WatchEvent): string {
  if (event.kind === "bookmark") return event.resourceVersion;
  const version = readMeta(event.object)?.resourceVersion;
  if (version === undefined) throw new WatchFailure("protocol", "an event has no object");
  return version;
}

/** True if this version is the other one, or a later one. False if davit cannot compare them. */
function reaches(version: string, other: string): boolean {
  return version === other || isOlder(other, version);
}
