/**
 * A rate limit with fair shares: as `TokenBucket`, but a client that takes one token after the other leaves half of the
 * burst to the others. So a newcomer nearly always gets a token at once, and a client that asks alone still gets the
 * whole rate.
 */

import { Shares } from "./shares.ts";
import type { TokenBucketOptions } from "./token-bucket.ts";

export class SharedBucket {
  readonly #options: TokenBucketOptions;
  /** The tokens that are not back yet. */
  readonly #shares: Shares;
  /** Who took them, the earliest first. */
  readonly #takers: (string | undefined)[] = [];
  /** Monotonic: until when tokens have come back. */
  #returnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.burst });
  }

  /**
   * Takes a token if there is one for this client.
   * @param client undefined for a client that only the rate for all limits.
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
