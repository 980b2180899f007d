/**
 * An overall limit on retries: however many names fail, all of them together are retried no more often than this. First
 * tries never wait. It is a token bucket, like client-go's (util/workqueue, BucketRateLimiter).
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

  /** Takes a token, a future one if none is left. @returns how long to wait for it, in milliseconds. */
  reserveMs(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + refillMs;
    return Math.max(0, this.#fullAtMs - nowMs - burst * refillMs);
  }
}
