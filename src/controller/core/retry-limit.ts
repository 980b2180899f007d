/**
 * An overall limit on retries: however many things fail, they are tried again no more often than this together. What is
 * tried for the first time is never held up. A token bucket, as client-go has one (util/workqueue, BucketRateLimiter).
 */

import type { Clock } from "../../lib/clock.ts";

/** client-go's 10 a second, after a burst of 100. */
const refillMs = 100;
const burst = 100;

export class RetryLimit {
  readonly #clock: Clock;
  /** When the bucket is full again, by the monotonic clock. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a token, one of later if there is none left. @returns how long to wait for it, milliseconds. */
  reserveMs(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + refillMs;
    return Math.max(0, this.#fullAtMs - nowMs - burst * refillMs);
  }
}
