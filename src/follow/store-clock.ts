/**
 * A follower's estimate of the store's monotonic clock. A line may take any time to arrive, and a slow connection must
 * not make old lines look new.
 *
 * The first line of a connection cannot be older than the follower's request, so it gives the first estimate. After
 * that both clocks advance alike, except for a small drift.
 */

/** More than two uncorrected clocks drift apart: 200 ppm, 17 s a day. */
const maxDrift = 0.0002;

export class StoreClock {
  /** This process's time minus the store's. It is too large by at most `maxDrift` times the connection's duration. */
  #offsetMs: number;
  #atMs: number;

  /**
   * @param askedAtMs monotonic time of this process before the store answered.
   * @param saidMs the store's clock when it answered.
   */
  constructor(askedAtMs: number, saidMs: number) {
    this.#offsetMs = askedAtMs - saidMs;
    this.#atMs = askedAtMs;
  }

  /**
   * Takes the store's time from a later line. @param heardAtMs monotonic time of this process when the line arrived.
   */
  hear(saidMs: number, heardAtMs: number): void {
    const drifted = this.#offsetMs + (heardAtMs - this.#atMs) * maxDrift;
    this.#offsetMs = Math.min(drifted, heardAtMs - saidMs);
    this.#atMs = heardAtMs;
  }

  /** Converts a time of the store to monotonic time of this process: rather too early than too late. */
  localTime(storeMs: number): number {
    return storeMs + this.#offsetMs;
  }
}
