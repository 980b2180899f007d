/** A rate limit: callers get a number of tokens per second, and several tokens without a wait after a pause. */

import type { Clock } from "./clock.ts";
import { Shares } from "./shares.ts";

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

/**
 * A rate limit that clients share: a `TokenBucket` in which a client that takes one token after the other leaves half
 * of the burst to the others. So a new client nearly always gets a token at once, and a client that asks alone still
 * gets the whole rate.
 */
export class SharedBucket {
  readonly #options: TokenBucketOptions;
  /** The tokens that are taken and not yet returned. */
  readonly #shares: Shares;
  /** Who took them, the earliest first. */
  readonly #takers: (string | undefined)[] = [];
  /** When the last token was returned, by the monotonic clock. */
  #returnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.burst });
  }

  /**
   * Takes a token if there is one for this client.
   * @param client undefined for a request that counts only for the rate of all clients.
   */
  tryTake(client: string | undefined): boolean {
    this.#giveBack();
    if (!this.#shares.take(client)) return false;
    this.#takers.push(client);
    return true;
  }

  #giveBack(): void {
    const { clock, perSecond } = this.#options;
    const intervalMs = 1_000 / perSecond;
    const nowMs = clock.monotonicMs();
    while (this.#takers.length > 0 && nowMs - this.#returnedAtMs >= intervalMs) {
      this.#shares.release(this.#takers.shift());
      this.#returnedAtMs += intervalMs;
    }
    if (this.#takers.length === 0) this.#returnedAtMs = nowMs;
  }
}
