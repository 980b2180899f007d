/**
 * The timers of nodes with an end, the next due one first. It is a binary heap in which each timer knows its position,
 * so any timer can be removed quickly. Pure: it reads no clock.
 */

import type { StorePath } from "../core/node.ts";

/** Says when a node ends. A node with a new end gets a new timer. */
export interface Timer {
  readonly path: StorePath;
  readonly createdIndex: number;
  /** The end in events and in the log: Unix milliseconds by the clock of the run that made the timer. */
  readonly expiresAtMs: number;
  /** The requested ttl. */
  readonly ttlSeconds: number;
  /** The end by the clock of the present run. It equals `expiresAtMs` in the run that made the timer. */
  dueAtMs: number;
  /** The timer's place in the heap; -1 outside of the heap. Only `ExpiringSet` writes it. */
  position: number;
}

/** 9999-12-31T23:59:59Z, the last second that RFC 3339 can write. A node with a longer ttl ends at this time. */
export const lastExpiryMs = 253_402_300_799_000;

/** A timer of the present run. */
export function timerUntil(
  endMs: number,
  { path, createdIndex, ttlSeconds }: Pick<Timer, "path" | "createdIndex" | "ttlSeconds">,
): Timer {
  const expiresAtMs = Math.min(endMs, lastExpiryMs);
  return { path, createdIndex, expiresAtMs, ttlSeconds, dueAtMs: expiresAtMs, position: -1 };
}

/** The timer of a `Writing`; undefined if the node is permanent. */
export function timerFor(
  { path, atMs, ttlSeconds }: Pick<Timer, "path"> & { readonly atMs: number; readonly ttlSeconds?: number | undefined },
  createdIndex: number,
): Timer | undefined {
  if (ttlSeconds === undefined) return undefined;
  return timerUntil(atMs + ttlSeconds * 1_000, { path, createdIndex, ttlSeconds });
}

export class ExpiringSet {
  #heap: Timer[] = [];

  /** When the next timer is due; Infinity while the set is empty. */
  get nextDueAtMs(): number {
    return this.#heap[0]?.dueAtMs ?? Number.POSITIVE_INFINITY;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Ignores a timer that is already in the set. */
  add(timer: Timer): void {
    if (timer.position >= 0) return;
    this.#heap.push(timer);
    this.#up(timer, this.#heap.length - 1);
  }

  /** Ignores a timer that is not in the set. */
  remove(timer: Timer): void {
    const { position } = timer;
    if (position < 0) return;
    const last = this.#heap.pop();
    timer.position = -1;
    if (last === undefined || last === timer) return;
    this.#up(last, position);
    this.#down(last, last.position);
  }

  /** Replaces all timers by those of another set, which nobody may use afterwards. */
  adopt(other: ExpiringSet): void {
    for (const timer of this.#heap) timer.position = -1;
    this.#heap = other.#heap;
  }

  /** Takes out at most `max` due timers, by time, then by createdIndex. */
  takeDue(nowMs: number, max: number): readonly Timer[] {
    const due: Timer[] = [];
    for (let next = this.#heap[0]; next !== undefined && due.length < max; next = this.#heap[0]) {
      if (next.dueAtMs > nowMs) break;
      this.remove(next);
      due.push(next);
    }
    return due;
  }

  /**
   * Begins a run: moves each timer to the clock of the new run, which may differ from the last run's clock by any
   * amount. A timer keeps its remaining time, but never has more than its ttl.
   * @param nowMs when the new run begins, by its clock.
   * @param lastMs time of the last run's last record, by that run's clock. If it is unknown (undefined), both runs
   * count as having the same clock.
   * @param isAgeless true for a path whose node gets its whole ttl again.
   */
  beginRun(nowMs: number, lastMs = nowMs, isAgeless: (path: StorePath) => boolean = () => false): void {
    for (const timer of this.#heap) {
      const wholeMs = timer.ttlSeconds * 1_000;
      const leftMs = isAgeless(timer.path) ? wholeMs : Math.min(timer.dueAtMs - lastMs, wholeMs);
      timer.dueAtMs = nowMs + leftMs;
    }
    for (let at = this.#heap.length >> 1; at >= 0; at--) {
      const timer = this.#heap[at];
      if (timer !== undefined) this.#down(timer, at);
    }
  }

  #up(timer: Timer, from: number): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = this.#heap[above];
      if (other === undefined || !endsBefore(timer, other)) break;
      this.#place(other, at);
      at = above;
    }
    this.#place(timer, at);
  }

  #down(timer: Timer, from: number): void {
    let at = from;
    for (;;) {
      const left = this.#heap[2 * at + 1];
      const right = this.#heap[2 * at + 2];
      const isRight = left !== undefined && right !== undefined && endsBefore(right, left);
      const sooner = isRight ? right : left;
      if (sooner === undefined || !endsBefore(sooner, timer)) break;
      this.#place(sooner, at);
      at = 2 * at + (isRight ? 2 : 1);
    }
    this.#place(timer, at);
  }

  #place(timer: Timer, at: number): void {
    this.#heap[at] = timer;
    timer.position = at;
  }
}

function endsBefore(a: Timer, b: Timer): boolean {
  return a.dueAtMs === b.dueAtMs ? a.createdIndex < b.createdIndex : a.dueAtMs < b.dueAtMs;
}

interface DetachedTimersOptions {
  readonly timers: ExpiringSet;
  /** True for a timer whose node is in the tree again, because the batch that removed the node was undone. */
  readonly isArmed: (timer: Timer) => boolean;
}

/**
 * Removes the timers of large removed directories from the `ExpiringSet`. It works in steps, because there may be a
 * million timers. A timer that is not removed yet has no effect: `Expiry` ignores timers that are not armed.
 */
export class DetachedTimers {
  readonly #options: DetachedTimersOptions;
  #waiting: Iterator<Timer>[] = [];

  constructor(options: DetachedTimersOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(timers: Iterable<Timer>): void {
    this.#waiting.push(timers[Symbol.iterator]());
  }

  /** Call it after the set has lost all timers. */
  forget(): void {
    this.#waiting = [];
  }

  /** Takes some detached timers out of the set, at most `max`. */
  sweep(max: number): void {
    const { timers, isArmed } = this.#options;
    for (let swept = 0; swept < max; swept++) {
      const next = this.#waiting[0]?.next();
      if (next === undefined) return;
      if (next.done === true) this.#waiting.shift();
      else if (!isArmed(next.value)) timers.remove(next.value);
    }
  }
}
