/** The nodes with an end, the next one first: a binary heap where each timer knows its place. Pure. */

import type { StorePath } from "../core/node.ts";

/** When a node ends. A node with a new end gets a new timer. */
export interface Timer {
  readonly path: StorePath;
  readonly createdIndex: number;
  /** The end in events and in the log; Unix milliseconds by the clock of the run that set it. */
  readonly expiresAtMs: number;
  /** The requested ttl. */
  readonly ttlSeconds: number;
  /** The end by the clock of this run; equal to `expiresAtMs` in the run that set it. */
  dueAtMs: number;
  /** In the heap; -1 for a timer outside of it. Only the set writes it. */
  position: number;
}

export class ExpiringSet {
  readonly #heap: Timer[] = [];

  /** When the next one is due; Infinity when there is none. */
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
   * Begins a run at a time of its clock, which may differ from the last run's clock by any amount. Each timer keeps its
   * remaining time, but never more than its ttl.
   * @param lastMs time of the last run's last record, by that run's clock. If it is unknown (undefined), both runs
   * count as having the same clock.
   * @param isAgeless true for a path whose time begins anew with each run.
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
