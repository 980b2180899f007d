/**
 * A follower's estimate of the store's monotonic clock. A line may take any time to arrive, and a slow connection must
 * not make old lines look new.
 *
 * The first line of a connection cannot be older than the follower's request, so it gives the first estimate. Later
 * lines cannot confirm the estimate, because all of them may arrive late. So the estimate is lowered by the largest
 * possible drift, until a new connection gives a new estimate.
 */

/** A limit that the drift between two clocks never reaches, even while NTP corrects them in opposite directions. */
const maxDrift = 0.001;

export class StoreClock {
  /** This process's time minus the store's, never too large. */
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
    const drifted = this.#offsetMs - (heardAtMs - this.#atMs) * maxDrift;
    this.#offsetMs = Math.min(drifted, heardAtMs - saidMs);
    this.#atMs = heardAtMs;
  }

  /**
   * Converts a time of the store, from the last line, to monotonic time of this process. The result is never too late.
   * It is too early by at most twice `maxDrift` of the connection's duration, plus the delay of the first line.
   */
  localTime(storeMs: number): number {
    return storeMs + this.#offsetMs;
  }
}
