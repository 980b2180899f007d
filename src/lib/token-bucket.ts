/** A rate limit: callers get a number of tokens per second, and several tokens without a wait after a pause. */

import type { Clock } from "./clock.ts";

export interface TokenBucketOptions {
  readonly clock: Clock;
  readonly perSecond: number;
  /** The most tokens that callers get without a wait after a pause. */
  readonly burst: number;
}

export class TokenBucket {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #burst: number;
  /** Monotonic time at which the next token is available. */
  #nextAtMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, perSecond, burst }: TokenBucketOptions) {
    this.#clock = clock;
    this.#intervalMs = 1_000 / perSecond;
    this.#burst = burst;
  }

  /** Takes a token if one is available now. @returns false otherwise. */
  tryTake(): boolean {
    return this.#waitMs() <= 0 && this.#take();
  }

  /** Takes a token, after a wait if necessary. Callers get tokens in the order of their calls. */
  async take(signal: AbortSignal): Promise<void> {
    const waitMs = this.reserveMs();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
  }

  /** Takes the next token, even if it is available only later. @returns how long the caller must wait for it. */
  reserveMs(): number {
    const waitMs = this.#waitMs();
    this.#take();
    return Math.max(0, waitMs);
  }

  #waitMs(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - (this.#burst - 1) * this.#intervalMs);
    return this.#nextAtMs - nowMs;
  }

  #take(): true {
    this.#nextAtMs += this.#intervalMs;
    return true;
  }
}
