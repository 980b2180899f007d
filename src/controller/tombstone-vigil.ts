/**
 * Which tombstones must not end yet, although their time is over soon, because more is to be expected:
 *
 * - while the source is not followed: what else went is not known;
 * - while Groups of machines go by the dozen: kubectl and others remove them one by one, which takes minutes for
 *   thousands, and the catch-all may be the last of them;
 * - while they come back by the dozen, which takes as long, and the catch-all may have been the first of them.
 *
 * It decides, and changes nothing: the controller writes again what it names.
 */

import type { Clock } from "../lib/clock.ts";

export interface TombstoneVigilOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** How long a tombstone stays by itself. */
  readonly ttlMs: number;
}

/** So many within the time of one tombstone are no longer machines that somebody takes out one at a time. */
const massCount = 10;

// The slowest removal that was seen, kubectl's prune with 5 a second, takes 10,000 Groups in half an hour. Beyond it a
// fleet in which Groups come and go all the time would keep its machines waiting for ever.
const massLimitMs = 60 * 60_000;

export class TombstoneVigil {
  readonly #options: TombstoneVigilOptions;
  /** When each tombstone was first seen, monotonic. */
  readonly #seenAtMs = new Map<string, number>();
  /** Of steps within the time of one tombstone: when, and how many they left and took away. */
  #moves: { readonly atMs: number; readonly count: number }[] = [];
  #isMoving = false;

  constructor(options: TombstoneVigilOptions) {
    this.#options = options;
  }

  /** A step has left and taken away so many. */
  moved(count: number): void {
    if (count === 0) return;
    this.#moves.push({ atMs: this.#options.clock.monotonicMs(), count });
    this.#isMoving = true;
  }

  /** What was due has begun anew: a whole time from now, unless more goes or comes. */
  renewed(): void {
    this.#isMoving = false;
  }

  /** @returns those of all tombstones, by path, whose time is to begin anew. */
  due(paths: readonly string[], isFollowed: boolean): readonly string[] {
    const nowMs = this.#options.clock.monotonicMs();
    this.#see(paths, nowMs);
    if (!isFollowed) return paths;
    if (!this.#isMoving || !this.#isMass(nowMs)) return [];
    return paths.filter((path) => nowMs - (this.#seenAtMs.get(path) ?? nowMs) < massLimitMs);
  }

  #see(paths: readonly string[], nowMs: number): void {
    const current = new Set(paths);
    for (const path of this.#seenAtMs.keys()) if (!current.has(path)) this.#seenAtMs.delete(path);
    for (const path of paths) if (!this.#seenAtMs.has(path)) this.#seenAtMs.set(path, nowMs);
  }

  #isMass(nowMs: number): boolean {
    this.#moves = this.#moves.filter(({ atMs }) => nowMs - atMs < this.#options.ttlMs);
    return this.#moves.reduce((sum, { count }) => sum + count, 0) >= massCount;
  }
}
