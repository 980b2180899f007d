/**
 * The store's monotonic clock, as far as a follower knows it. A line may take any time to arrive, and a connection that
 * delays lines must not make them look fresh. Only the first line has a bound: the store sends it after it was asked.
 * From then on both clocks run alike, except for a little drift.
 */

/** Clocks that are never corrected differ by less: 200 ppm, 17 s a day. */
const maxDrift = 0.0002;

export class StoreClock {
  /** Of this process's time minus the store's, never too large. */
  #offsetMs: number;
  #atMs: number;

  /**
   * @param askedAtMs monotonic time of this process, before the store was asked.
   * @param saidMs what the store's clock was when it answered.
   */
  constructor(askedAtMs: number, saidMs: number) {
    this.#offsetMs = askedAtMs - saidMs;
    this.#atMs = askedAtMs;
  }

  /** Takes in what the store says its time is. @param heardAtMs monotonic time of this process. */
  hear(saidMs: number, heardAtMs: number): void {
    const drifted = this.#offsetMs + (heardAtMs - this.#atMs) * maxDrift;
    this.#offsetMs = Math.min(drifted, heardAtMs - saidMs);
    this.#atMs = heardAtMs;
  }

  /** The monotonic time of this process that a time of the store is at the earliest. */
  localTime(storeMs: number): number {
    return storeMs + this.#offsetMs;
  }
}
