/** The clock port. Everything that reads time or waits gets one; `test/helpers/fake-clock.ts` is the other implementation. */

/** Reads time and waits. */
export interface Clock {
  /** Wall clock, Unix milliseconds. It may step in both directions. */
  nowMs(): number;
  /** Milliseconds since an arbitrary start; never steps, so differences are durations. */
  monotonicMs(): number;
  /**
   * Resolves after `durationMs`, any length from 0 on, or at once when `signal` aborts.
   * It never rejects: a caller looks at its signal afterwards.
   */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
}

// setTimeout counts in a signed 32-bit number and fires at once beyond it: longer waits are made of several.
const maxTimerMs = 2 ** 31 - 1;

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (durationMs, signal) => {
    let leftMs = durationMs;
    while (leftMs > 0 && signal?.aborted !== true) {
      const stepMs = Math.min(leftMs, maxTimerMs);
      await timer(stepMs, signal);
      leftMs -= stepMs;
    }
  },
};

function timer(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(handle);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const handle = setTimeout(done, durationMs);
    signal?.addEventListener("abort", done, { once: true });
  });
}
