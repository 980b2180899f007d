/**
 * The clock port. All code that reads the time or waits gets a clock as an argument. Tests use the other
 * implementation, `test/helpers/fake-clock.ts`.
 */

/** Reads time and waits. */
export interface Clock {
  /** Wall clock, Unix milliseconds. It may step in both directions. */
  nowMs(): number;
  /** Milliseconds since an arbitrary start. It never steps, so the difference of two readings is a duration. */
  monotonicMs(): number;
  /**
   * Resolves after `durationMs`, or immediately when `signal` aborts. It never rejects: check the signal afterwards.
   * @param durationMs 0 or more, without an upper limit.
   */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
}

// setTimeout fires immediately if the time exceeds a signed 32-bit number. So a longer wait uses several timers.
const maxTimerMs = 2 ** 31 - 1;

/** The clock of the computer. */
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

/** Returns the earliest known time; undefined if no time is known. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Returns a time as the Date that libraries expect. */
export function dateOf(unixMs: number): Date {
  return new Date(unixMs);
}

/** Returns a time as RFC 3339 in UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export function toRfc3339(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

/**
 * Makes a clock that begins with the wall clock's present time and then follows the monotonic clock, so it never steps.
 * @returns a function that reads this clock, in whole Unix milliseconds.
 */
export function steadyClock(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => Math.floor(offsetMs + clock.monotonicMs());
}
