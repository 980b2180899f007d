/**
 * Decides which tombstones to renew before they expire, because more changes may follow:
 *
 * - While davit does not follow the source: it may have missed the removal of other Groups.
 * - During a mass removal: kubectl and other tools remove Groups one by one. Thousands take minutes, and the catch-all
 *   may be removed last.
 * - During a mass return: this takes as long, and the catch-all may return first.
 *
 * The controller renews the tombstones; this file changes nothing.
 */

import type { ControllerPorts } from "../core/controller-ports.ts";

interface TombstoneRenewalOptions extends Pick<ControllerPorts, "clock" | "adminNamespace"> {
  /** How long a tombstone lasts without renewal. */
  readonly ttlMs: number;
  /** The namespaces of the removed objects that the tombstone at a path records. */
  readonly namespacesAt: (path: string) => readonly string[];
}

/** This many changes within a tombstone's lifetime are a mass change. Fewer are changes to single machines. */
const massCount = 10;

// For a tombstone, all changes of its own namespace and of the admin namespace count. Of every other namespace, at most
// this many changes count, so that no such namespace alone can keep machines waiting.
const mostOfAnother = 4;

// While there are mass changes, a tombstone is renewed until it is this old. The slowest removal seen, kubectl's prune
// at 5 a second, takes half an hour for 10,000 Groups. Without the limit, machines of a fleet whose Groups change all
// the time would wait for ever.
const massLimitMs = 60 * 60_000;

export class TombstoneRenewal {
  readonly #options: TombstoneRenewalOptions;
  /** When each tombstone was first seen, monotonic. */
  readonly #seenAtMs = new Map<string, number>();
  /** The steps of the last `ttlMs`. For each tombstone that a step wrote or removed, `namespaces` has one entry. */
  #moves: { readonly atMs: number; readonly namespaces: readonly string[] }[] = [];
  /** True if tombstones were written or removed since the last renewal. */
  #isMoving = false;

  constructor(options: TombstoneRenewalOptions) {
    this.#options = options;
  }

  /** Records that a step wrote or removed tombstones. @param namespaces of each tombstone's object. */
  moved(namespaces: readonly string[]): void {
    if (namespaces.length === 0) return;
    this.#moves.push({ atMs: this.#options.clock.monotonicMs(), namespaces });
    this.#isMoving = true;
  }

  /** Records that the due tombstones were renewed. Unless more changes come, they expire after `ttlMs`. */
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

  /** How many tombstones of each namespace were written or removed in the last `ttlMs`. */
  #countsSince(nowMs: number): ReadonlyMap<string, number> {
    this.#moves = this.#moves.filter(({ atMs }) => nowMs - atMs < this.#options.ttlMs);
    const counts = new Map<string, number>();
    for (const { namespaces } of this.#moves) {
      for (const namespace of namespaces) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    return counts;
  }

  /** How many of these changes count for the tombstone at a path. */
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
