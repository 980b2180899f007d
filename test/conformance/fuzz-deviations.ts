/**
 * Where davit answers otherwise than etcd 3.4.23, on purpose: everything else that differs is a mistake. What `isAsked`
 * is asked all the same, and excused by the functions below in no other case; the rest would leave the two stores in
 * different states, and is left out of the sequences.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../src/model/json.ts";

interface Deviation {
  readonly isAsked: boolean;
  readonly reason: string;
}

export const deviations = {
  "directory-index": {
    isAsked: true,
    reason: "an update is a directory's last change, so davit keeps its modifiedIndex; etcd shows the old one again",
  },
  "bad-escape": {
    isAsked: true,
    reason: "a path with a bad escape never reaches etcd's API, so its 400 has none of the headers; davit's has them",
  },
  "stream-twin": {
    isAsked: true,
    reason: "a stream of exactly the path that was deleted or has ended gets that event from etcd twice",
  },
  "stream-replay": {
    isAsked: true,
    reason: "a stream that begins in the history gets one event from etcd and then nothing; davit goes on",
  },
  "hidden-replay": {
    isAsked: true,
    reason: "hidden names stay hidden in a replay; etcd shows them there, and only there, to recursive watches",
  },
  "replay-below-prefix": {
    isAsked: true,
    reason: "in a replay etcd tells of the end of a directory /foo those who watch /foobar, too",
  },
  "reserved-keys": { isAsked: false, reason: "/davit and /machines are davit's own (docs/internals/store.md)" },
  "huge-ttl": { isAsked: false, reason: "a ttl beyond the year 2318 wraps around in etcd, and ends keys at once" },
  "invalid-utf8": {
    isAsked: false,
    reason: "bytes that are not UTF-8 become U+FFFD, and so equal (docs/internals/store.md)",
  },
  "raw-target": { isAsked: false, reason: "raw bytes above ASCII in a target are 400 (docs/internals/store.md)" },
  limits: { isAsked: false, reason: "longest key, value and request line, quota, watchers (docs/internals/store.md)" },
  "due-keys": { isAsked: false, reason: "what is due is gone at once, in etcd up to 0.5 s later: sequences wait" },
  "slow-streams": { isAsked: false, reason: "etcd forgets a stream that is 100 events behind; davit closes it" },
  statistics: { isAsked: false, reason: "etcd counts some failures as successes, and reads of its own" },
} as const satisfies Record<string, Deviation>;

export type DeviationName = keyof typeof deviations;

/** True when two answers differ only in the modifiedIndex of directories that were updated. */
export function isMovedDirectory(etcd: JsonObject, davit: JsonObject, updates: ReadonlySet<number>): boolean {
  const names = Object.keys(etcd);
  if (names.join() !== Object.keys(davit).join()) return false;
  return names.every((name) => {
    const isMoved = name === "modifiedIndex" && davit.dir === true && updates.has(Number(davit.modifiedIndex));
    return isMoved || isMovedValue(etcd[name], davit[name], updates);
  });
}

function isMovedValue(
  etcd: JsonValue | undefined,
  davit: JsonValue | undefined,
  updates: ReadonlySet<number>,
): boolean {
  if (isJsonObject(etcd) && isJsonObject(davit)) return isMovedDirectory(etcd, davit, updates);
  if (!Array.isArray(etcd) || !Array.isArray(davit)) return etcd === davit;
  return etcd.length === davit.length && etcd.every((each, at) => isMovedValue(each, davit[at], updates));
}

/** A watch that both servers answer with events. */
export interface WatchedPath {
  readonly key: string;
  readonly recursive: boolean;
  readonly stream: boolean;
  /** 0 for changes from now on. */
  readonly waitIndex: number;
  /** The store's index when it was opened. */
  readonly openedIndex: number;
}

/** The events of a stream as etcd would send them if it sent none twice. */
export function withoutTwins(events: readonly string[], { key, stream }: WatchedPath): readonly string[] {
  if (!stream) return events;
  return events.filter((event, at) => event !== events[at - 1] || keyOfEvent(event) !== key);
}

/**
 * The deviation that makes two servers tell different events, if one does.
 * @param isSame compares two events.
 */
export function watchDeviation(
  watched: WatchedPath,
  etcd: readonly string[],
  davit: readonly string[],
  isSame: (etcd: string, davit: string) => boolean,
): DeviationName | undefined {
  const [first] = etcd;
  const [ours] = davit;
  if (first === undefined || !isReplayed(first, watched)) return undefined;
  const isLater = ours === undefined || indexOfEvent(ours) > indexOfEvent(first);
  if (isLater && isHiddenBelow(keyOfEvent(first), watched)) return "hidden-replay";
  if (isLater && isBelowPrefix(first, watched)) return "replay-below-prefix";
  const isAhead = watched.stream && etcd.length === 1 && ours !== undefined && isSame(first, ours);
  return isAhead && isAscending(davit) ? "stream-replay" : undefined;
}

function isReplayed(event: string, { waitIndex, openedIndex }: WatchedPath): boolean {
  return waitIndex > 0 && indexOfEvent(event) <= openedIndex;
}

function isHiddenBelow(key: string, watched: WatchedPath): boolean {
  const prefix = watched.key === "/" ? "/" : `${watched.key}/`;
  return watched.recursive && key.startsWith(prefix) && /(^|\/)_/.test(key.slice(prefix.length));
}

function isBelowPrefix(event: string, { key }: WatchedPath): boolean {
  const { action, prevNode } = parseJsonObject(event) ?? {};
  const hasEnded = action === "delete" || action === "expire";
  const isDirectory = isJsonObject(prevNode) && prevNode.dir === true;
  const ended = keyOfEvent(event);
  return hasEnded && isDirectory && key.startsWith(ended) && !key.startsWith(`${ended}/`);
}

function isAscending(events: readonly string[]): boolean {
  return events.every((event, at) => at === 0 || indexOfEvent(event) > indexOfEvent(events[at - 1] ?? ""));
}

function indexOfEvent(event: string): number {
  return Number(nodeOf(event)?.modifiedIndex);
}

function keyOfEvent(event: string): string {
  return String(nodeOf(event)?.key);
}

function nodeOf(event: string): JsonObject | undefined {
  const node = parseJsonObject(event)?.node;
  return isJsonObject(node) ? node : undefined;
}
