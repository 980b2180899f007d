/** How long to wait after a failure: longer with each one, and never the same for two clients that failed together. */

import { backoffMs, jittered } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";

/**
 * client-go v0.35.8 tools/cache/reflector.go, NewReflectorWithOptions: 800 ms, doubled up to 30 s, jitter 1.0, reset
 * after 2 min. That cap, 30 to 60 s between two tries, protects an unwell API server from every controller and kubelet
 * of a cluster. davit is one client, with a few watches that continue where they ended; and an operator who repairs an
 * API server may have a rack that waits for the next edit. So davit reconnects within 10 s.
 */
const delays = { firstMs: 800, capMs: 5_000 };
const resetMs = 120_000;

export class RetryDelays {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #random: () => number;
  #attempt = 0;
  #failedAtMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, random }: { readonly clock: Pick<Clock, "monotonicMs">; readonly random: () => number }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** True when the last failure is so long ago that the next one counts as the first. */
  get isCalm(): boolean {
    return this.#clock.monotonicMs() - this.#failedAtMs >= resetMs;
  }

  /** Records a failure; returns how long to wait. */
  next(): number {
    if (this.isCalm) this.#attempt = 0;
    this.#failedAtMs = this.#clock.monotonicMs();
    const delayMs = backoffMs(this.#attempt, delays);
    this.#attempt += 1;
    return jittered(delayMs, this.#random);
  }
}
