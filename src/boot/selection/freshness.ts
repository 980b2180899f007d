/**
 * Measures the age of the last proof that the served documents match the objects. The check of this age costs only a
 * subtraction, because each request for a Profile that installs makes it.
 */

import type { Clock } from "../../lib/clock.ts";

export interface FreshnessOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The greatest age of a proof that allows an `Install`; 0 for no limit. */
  readonly maxStalenessMs: number;
}

/** `unconfirmed`: no proof since the start. `stale`: the last proof is too old. */
export type Staleness = "unconfirmed" | "stale";

export class Freshness {
  readonly #options: FreshnessOptions;
  readonly #startMs: number;
  #provenAtMs: () => number | undefined = () => undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
  }

  /**
   * Sets the function that returns the time of the last proof. Before this call, nothing is proven.
   * @param provenAtMs returns the time on the monotonic clock; undefined before the first proof.
   */
  provenBy(provenAtMs: () => number | undefined): void {
    this.#provenAtMs = provenAtMs;
  }

  /** When the last proof was, on the monotonic clock; undefined before the first one. */
  get provenAtMs(): number | undefined {
    return this.#provenAtMs();
  }

  /** The time since the last proof. Without a proof, the time since the start. */
  get ageSeconds(): number {
    return (this.#options.clock.monotonicMs() - (this.#provenAtMs() ?? this.#startMs)) / 1_000;
  }

  /** Why the last proof does not allow an `Install`; undefined if it does. */
  get staleness(): Staleness | undefined {
    const { clock, maxStalenessMs } = this.#options;
    if (maxStalenessMs === 0) return undefined;
    const provenAtMs = this.#provenAtMs();
    if (provenAtMs === undefined) return "unconfirmed";
    return clock.monotonicMs() - provenAtMs > maxStalenessMs ? "stale" : undefined;
  }
}
