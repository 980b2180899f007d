/**
 * Logs the requests that the store's door refuses: who asks without a right, or with an outdated token. A line names
 * the client and the reason, but no path, header or token, because a stranger writes these.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";

export interface RefusedRequest {
  /** The client's address; undefined if the client is gone. */
  readonly client: string | undefined;
  readonly method: string | undefined;
  readonly reason: "unauthorized" | "forbidden" | "wrongHost";
}

/** A client that asks again and again gets a line for each reason in this time. */
const remindMs = 60_000;
const maxKnown = 1_000;
/** Of all clients together: ten at once, then twelve a minute. */
const lines = { perSecond: 0.2, burst: 10 };

export class RefusalLog {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #bucket: TokenBucket;
  /** Monotonic: when a client's last line was written, by client and reason. */
  readonly #written = new Map<string, number>();
  #unlogged = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
    this.#bucket = new TokenBucket({ clock, ...lines });
  }

  /** Logs a refused request, or counts it for the next line. */
  add(refused: RefusedRequest): void {
    const key = `${refused.client} ${refused.reason}`;
    const nowMs = this.#clock.monotonicMs();
    const isKnown = nowMs - (this.#written.get(key) ?? Number.NEGATIVE_INFINITY) < remindMs;
    if (isKnown || !this.#bucket.tryTake()) {
      this.#unlogged += 1;
      return;
    }
    if (this.#written.size >= maxKnown) this.#written.clear();
    this.#written.set(key, nowMs);
    const unlogged = this.#unlogged > 0 ? { unlogged: this.#unlogged } : {};
    this.#unlogged = 0;
    this.#log.warn({ ...refused, ...unlogged }, "request refused");
  }
}
