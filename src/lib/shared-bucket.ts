/**
 * A rate limit that clients share: a `TokenBucket` in which a client that takes one token after the other leaves half
 * of the burst to the others. So a new client nearly always gets a token at once, and a client that asks alone still
 * gets the whole rate.
 */

import { Shares } from "./shares.ts";
import type { TokenBucketOptions } from "./token-bucket.ts";

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
