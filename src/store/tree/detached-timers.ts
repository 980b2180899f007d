/**
 * Timers of directories that were removed with many of them. They leave the set in steps, since there may be a million.
 * Until then they are in the set without effect: whoever takes one from the set checks whether it is armed.
 */

import type { ExpiringSet, Timer } from "./expiring-set.ts";

export interface DetachedTimersOptions {
  readonly timers: ExpiringSet;
  /** True for a timer whose node is back, since its batch was undone. */
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

  /** Takes some of them out of the set. @param max how many, at most. */
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
