/** The nodes that will end, the next one first: a binary heap where each timer knows its place. Pure. */

import type { StorePath } from "./node.ts";

/** When a node ends. A node that gets another end gets another timer. */
export interface Timer {
  readonly path: StorePath;
  readonly createdIndex: number;
  /** What events show, and the log knows the end by; Unix milliseconds by the clock of the run that set it. */
  readonly expiresAtMs: number;
  /** What was asked. */
  readonly ttlSeconds: number;
  /** When it is due by the clock of this run; `expiresAtMs` in the run that set it. */
  dueAtMs: number;
  /** In the heap; -1 for a timer that is not in it. The set's own. */
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

  /** A timer that is in it stays as it is. */
  add(timer: Timer): void {
    if (timer.position >= 0) return;
    this.#heap.push(timer);
    this.#up(timer, this.#heap.length - 1);
  }

  /** A timer that is not in it is left alone. */
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
   * Begins a run at a time of its clock, which may differ from that of the run before by any amount: what was left of
   * each timer then is left now, and never more than was asked.
   * @param lastMs when the run before was last heard of, by its clock; undefined if that is not known. Then the clocks are
   *   taken for one.
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
