/**
 * Which tombstones must not end yet, although their time is over soon. More changes may follow:
 *
 * - While the source is not followed: other Groups may have gone unseen.
 * - While Groups of machines go by the dozen: kubectl and others remove them one by one. That takes minutes for
 *   thousands, and the catch-all may be the last of them.
 * - While Groups return by the dozen: that takes as long, and the catch-all may have been the first of them.
 *
 * It decides, and changes nothing: the controller renews the tombstones that it names.
 */

import type { Clock } from "../../lib/clock.ts";

export interface TombstoneVigilOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** How long an unrenewed tombstone stays. */
  readonly ttlMs: number;
  /** The namespace whose changes count for all; undefined where every namespace's changes do. */
  readonly adminNamespace?: string | undefined;
  /** The namespaces of the objects that left the tombstone at a path. */
  readonly namespacesAt: (path: string) => readonly string[];
}

/** So many changes within a tombstone's time are a mass change, not machines changed one at a time. */
const massCount = 10;

// Changes in one namespace must not keep the machines of another one waiting.
const mostOfAnother = 4;

// The slowest removal seen, kubectl's prune at 5 a second, takes 10,000 Groups in half an hour. Without this limit, a
// fleet whose Groups change all the time would keep its machines waiting for ever.
const massLimitMs = 60 * 60_000;

export class TombstoneVigil {
  readonly #options: TombstoneVigilOptions;
  /** When each tombstone was first seen, monotonic. */
  readonly #seenAtMs = new Map<string, number>();
  /** Steps within one tombstone's time: when, and the namespaces of the tombstones that each left or removed. */
  #moves: { readonly atMs: number; readonly namespaces: readonly string[] }[] = [];
  #isMoving = false;

  constructor(options: TombstoneVigilOptions) {
    this.#options = options;
  }

  /** Records that a step left or removed tombstones: for each, the namespace of its object. */
  moved(namespaces: readonly string[]): void {
    if (namespaces.length === 0) return;
    this.#moves.push({ atMs: this.#options.clock.monotonicMs(), namespaces });
    this.#isMoving = true;
  }

  /** The due tombstones were renewed: they stay a whole time from now, unless more changes come. */
  renewed(): void {
    this.#isMoving = false;
  }

  /** @returns the paths of tombstones to renew. */
  due(paths: readonly string[], isFollowed: boolean): readonly string[] {
    const nowMs = this.#options.clock.monotonicMs();
    this.#see(paths, nowMs);
    if (!isFollowed) return paths;
    if (!this.#isMoving) return [];
    const counts = this.#countsSince(nowMs);
    if ([...counts.values()].reduce((sum, count) => sum + count, 0) < massCount) return [];
    const young = paths.filter((path) => nowMs - (this.#seenAtMs.get(path) ?? nowMs) < massLimitMs);
    return young.filter((path) => this.#concerning(path, counts) >= massCount);
  }

  #see(paths: readonly string[], nowMs: number): void {
    const current = new Set(paths);
    for (const path of this.#seenAtMs.keys()) if (!current.has(path)) this.#seenAtMs.delete(path);
    for (const path of paths) if (!this.#seenAtMs.has(path)) this.#seenAtMs.set(path, nowMs);
  }

  /** How many tombstones of each namespace were left or removed within the time of one tombstone. */
  #countsSince(nowMs: number): ReadonlyMap<string, number> {
    this.#moves = this.#moves.filter(({ atMs }) => nowMs - atMs < this.#options.ttlMs);
    const counts = new Map<string, number>();
    for (const { namespaces } of this.#moves) {
      for (const namespace of namespaces) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    return counts;
  }

  /** How many of these changes concern the tombstone at a path. */
  #concerning(path: string, counts: ReadonlyMap<string, number>): number {
    const { adminNamespace, namespacesAt } = this.#options;
    const own = adminNamespace === undefined ? [...counts.keys()] : [adminNamespace, ...namespacesAt(path)];
    let sum = 0;
    for (const [namespace, count] of counts) {
      sum += own.includes(namespace) ? count : Math.min(count, mostOfAnother);
    }
    return sum;
  }
}
