/**
 * Removes the timers of large removed directories from the `ExpiringSet`. It works in steps, because there may be a
 * million timers. A timer that is not removed yet has no effect: `Expiry` ignores timers that are not armed.
 */

import type { ExpiringSet, Timer } from "./expiring-set.ts";

export interface DetachedTimersOptions {
  readonly timers: ExpiringSet;
  /** True for a timer whose node is in the tree again, because the batch that removed the node was undone. */
  readonly isArmed: (timer: Timer) => boolean;
}

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
