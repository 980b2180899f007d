/**
 * What one writer's keys must be after a crash: what was acknowledged, and of the one write that was on its way either
 * all or nothing. Pure, but for the errors that it throws.
 */

import { deepStrictEqual } from "node:assert";
import type { StoredKey } from "./keys-client.ts";

export type Keys = ReadonlyMap<string, StoredKey>;

/** What a write does to the keys when it is carried out. */
export type Effect =
  | {
      readonly kind: "put";
      readonly path: string;
      readonly value: string;
      /** Wall clock at which it may be gone again, by its ttl; absent when it has none. */
      readonly endsAtMs?: number;
    }
  /** A key with a new name in a directory. */
  | { readonly kind: "post"; readonly directory: string; readonly value: string }
  /** A key, or a directory with all that is in it. */
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "none" };

/** Keys that were read. */
export interface Reading {
  readonly keys: Keys;
  /** Wall clock before and after. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** What was known of a writer when its store crashed. */
export interface Known {
  readonly keys: Keys;
  /** Of the write that was not answered; undefined when there was none. */
  readonly inFlight: Effect | undefined;
  /** The highest index of the writer's answers. */
  readonly index: number;
}

// The store counts on from the wall clock of its start: it and a test's clock may part by a few milliseconds.
const slackMs = 200;

/**
 * Compares what is there with what must be.
 * @returns what became of the write in flight; `absent` also when it would have changed nothing.
 * @throws {Error} when something acknowledged is missing or changed, or something is there that must not be.
 */
export function compare(known: Known, reading: Reading): "found" | "absent" {
  for (const [path, key] of reading.keys) {
    if (endOf(key) < reading.fromMs - slackMs) throw new Error(`${path} lives on after ${key.expiration}`);
  }
  const paths = new Set([...known.keys.keys(), ...reading.keys.keys()]);
  const changed = [...paths].filter((path) => !isAsKnown(path, known, reading));
  if (changed.length === 0) return "absent";
  const explained = new Set(known.inFlight === undefined ? [] : explain(known.inFlight, changed, { known, reading }));
  for (const path of changed) {
    if (!explained.has(path)) deepStrictEqual(reading.keys.get(path), known.keys.get(path), `${path} is not as it was`);
  }
  return "found";
}

function isAsKnown(path: string, known: Known, { keys, toMs }: Reading): boolean {
  const before = known.keys.get(path);
  const now = keys.get(path);
  if (before === undefined) return false;
  if (now === undefined) return endOf(before) <= toMs + slackMs;
  return (
    now.value === before.value &&
    now.modifiedIndex === before.modifiedIndex &&
    now.createdIndex === before.createdIndex &&
    isLater(before, now)
  );
}

/** True when a key ends as late as it did, or later: the time in which davit was down does not count. */
function isLater(before: StoredKey, now: StoredKey): boolean {
  if (before.expiration === undefined || now.expiration === undefined) return before.expiration === now.expiration;
  return endOf(now) >= endOf(before) - slackMs;
}

/** Those of the changes that an effect as a whole brings about. */
function explain(
  effect: Effect,
  changed: readonly string[],
  { known, reading }: { readonly known: Known; readonly reading: Reading },
): readonly string[] {
  const isNew = (path: string, value: string) => {
    const now = reading.keys.get(path);
    return now?.value === value && now.modifiedIndex > known.index;
  };
  switch (effect.kind) {
    case "none":
      return [];
    case "put": {
      const { path, value, endsAtMs = Number.POSITIVE_INFINITY } = effect;
      const hasEnded = !reading.keys.has(path) && endsAtMs <= reading.toMs + slackMs;
      return hasEnded || isNew(path, value) ? [path] : [];
    }
    case "post":
      return changed.filter((path) => isIn(path, effect.directory) && isNew(path, effect.value)).slice(0, 1);
    case "remove": {
      const isLeft = [...reading.keys.keys()].some((path) => isIn(path, effect.path));
      return isLeft ? [] : changed.filter((path) => isIn(path, effect.path));
    }
  }
}

/** True for a path and all that is below it. */
export function isIn(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

function endOf({ expiration }: StoredKey): number {
  return expiration === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiration);
}
