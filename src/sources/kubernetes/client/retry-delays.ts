/**
 * Decides how long to wait after a failure. Delays grow with each failure, and are partly random: clients that failed
 * together must not retry together.
 */

import { backoffMs, jittered } from "../../../lib/backoff.ts";
import type { Clock } from "../../../lib/clock.ts";

/**
 * Like client-go v0.35.8 (tools/cache/reflector.go, NewReflectorWithOptions), but with a lower cap. client-go waits 800
 * ms, doubles that up to 30 s with jitter 1.0, and resets after 2 min. Its cap means 30 to 60 s between two tries. So
 * long a pause protects an overloaded API server from all controllers and kubelets of a cluster. davit is one client
 * with a few watches. When the API server is repaired, a rack may be waiting for an operator's next change of an
 * object. So davit reconnects within 10 s.
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

  /** True when the last failure is so long ago that the next failure counts as the first. */
  get isCalm(): boolean {
    return this.#clock.monotonicMs() - this.#failedAtMs >= resetMs;
  }

  /** Records a failure. @returns how long to wait, in milliseconds. */
  next(): number {
    if (this.isCalm) this.#attempt = 0;
    this.#failedAtMs = this.#clock.monotonicMs();
    const delayMs = backoffMs(this.#attempt, delays);
    this.#attempt += 1;
    return jittered(delayMs, this.#random);
  }
}
