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

/** The earliest of the times that are known; undefined where none is. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** A time in the form that libraries take. */
export function dateOf(unixMs: number): Date {
  return new Date(unixMs);
}

/** A time as RFC 3339 in UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export function toRfc3339(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

/**
 * The wall clock as it was at this call, carried on by the monotonic one: it never steps.
 * @returns the way to read it, in whole Unix milliseconds.
 */
export function steadyClock(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => Math.floor(offsetMs + clock.monotonicMs());
}
