/**
 * Notices time that the monotonic clock has missed. On Linux this clock stands still while the computer is suspended,
 * so a proof from before would look new afterwards. The wall clock goes on, or somebody sets it after the resume. So
 * when it steps forward, as much time may have passed. davit cannot distinguish this from a clock that was wrong, and
 * assumes the worse.
 */

import type { Clock } from "./clock.ts";

/** No two readings of the clocks are so far apart, and no leap second is longer. */
const toleratedMs = 1_500;

export class Suspensions {
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** How far the wall clock was ahead of the monotonic clock when both were last read. */
  #aheadMs: number;
  #missedMs = 0;
  #noticedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "nowMs" | "monotonicMs">) {
    this.#clock = clock;
    this.#aheadMs = clock.nowMs() - clock.monotonicMs();
  }

  /** Milliseconds that the monotonic clock may have missed since this object was made. It only grows. */
  get missedMs(): number {
    this.#look();
    return this.#missedMs;
  }

  /**
   * Moves a time on the monotonic clock back if it is before the last missed time, so that its age is not too small. An
   * age may become too great, until a later proof replaces it.
   */
  corrected(atMs: number | undefined): number | undefined {
    this.#look();
    return atMs === undefined || atMs >= this.#noticedAtMs ? atMs : atMs - this.#missedMs;
  }

  #look(): void {
    const monotonicMs = this.#clock.monotonicMs();
    const aheadMs = this.#clock.nowMs() - monotonicMs;
    const steppedMs = aheadMs - this.#aheadMs;
    this.#aheadMs = aheadMs;
    if (steppedMs <= toleratedMs) return;
    this.#missedMs += steppedMs;
    this.#noticedAtMs = monotonicMs;
  }
}
