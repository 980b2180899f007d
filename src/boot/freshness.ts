/**
 * How long ago it was proven that the documents match the objects. Each request for a Profile that installs checks
 * this, so it costs only a subtraction.
 */

import type { Clock } from "../lib/clock.ts";

export interface FreshnessOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The age up to which a proof allows an `Install`; 0 for no limit. */
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
   * Sets the source of the proof; until then nothing is proven. @param provenAtMs monotonic, undefined before there was
   * a proof.
   */
  provenBy(provenAtMs: () => number | undefined): void {
    this.#provenAtMs = provenAtMs;
  }

  /** The time since the last proof; without a proof, since the start. */
  get ageSeconds(): number {
    return (this.#options.clock.monotonicMs() - (this.#provenAtMs() ?? this.#startMs)) / 1_000;
  }

  /** Undefined while an `Install` may be answered. */
  get staleness(): Staleness | undefined {
    const { clock, maxStalenessMs } = this.#options;
    if (maxStalenessMs === 0) return undefined;
    const provenAtMs = this.#provenAtMs();
    if (provenAtMs === undefined) return "unconfirmed";
    return clock.monotonicMs() - provenAtMs > maxStalenessMs ? "stale" : undefined;
  }
}
