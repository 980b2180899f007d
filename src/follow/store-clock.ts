/**
 * The store's monotonic clock, as a follower estimates it. A line may take any time to arrive, and a slow connection
 * must not make lines look fresh. Only the first line has a bound: the store sends it after the follower's request.
 * From then on both clocks run alike, except for a small drift.
 */

/** More than the drift between two uncorrected clocks: 200 ppm, 17 s a day. */
const maxDrift = 0.0002;

export class StoreClock {
  /** This process's time minus the store's, never too large. */
  #offsetMs: number;
  #atMs: number;

  /**
   * @param askedAtMs monotonic time of this process, before the store was asked.
   * @param saidMs the store's clock when it answered.
   */
  constructor(askedAtMs: number, saidMs: number) {
    this.#offsetMs = askedAtMs - saidMs;
    this.#atMs = askedAtMs;
  }

  /** Takes the store's time from a line. @param heardAtMs monotonic time of this process. */
  hear(saidMs: number, heardAtMs: number): void {
    const drifted = this.#offsetMs + (heardAtMs - this.#atMs) * maxDrift;
    this.#offsetMs = Math.min(drifted, heardAtMs - saidMs);
    this.#atMs = heardAtMs;
  }

  /** The earliest monotonic time of this process that a time of the store can be. */
  localTime(storeMs: number): number {
    return storeMs + this.#offsetMs;
  }
}
