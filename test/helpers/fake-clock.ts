import type { Clock } from "../../src/lib/clock.ts";

interface Sleeper {
  readonly wakesAtMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. Wall clock and monotonic clock move together unless stepped. */
export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #sleepers: Sleeper[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = startMs;
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
    if (durationMs <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { wakesAtMs: this.#monotonicMs + durationMs, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener(
        "abort",
        () => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
          resolve();
        },
        { once: true },
      );
    });
  }

  /** How many callers wait. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** How long until the next one wakes; undefined when nobody sleeps. */
  get nextWakeMs(): number | undefined {
    const wakesAtMs = this.#sleepers.map((sleeper) => sleeper.wakesAtMs - this.#monotonicMs);
    return wakesAtMs.length === 0 ? undefined : Math.min(...wakesAtMs);
  }

  /** Lets time pass, waking sleepers in order, and lets what they start run to its next wait. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#monotonicMs + durationMs;
    for (;;) {
      const next = this.#sleepers.toSorted((a, b) => a.wakesAtMs - b.wakesAtMs)[0];
      if (next === undefined || next.wakesAtMs > endMs) break;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      this.#moveTo(next.wakesAtMs);
      next.wake();
      await settle();
    }
    this.#moveTo(endMs);
    await settle();
  }

  /** Sets the wall clock as an administrator would; durations are untouched. */
  stepWallClock(deltaMs: number): void {
    this.#wallMs += deltaMs;
  }

  #moveTo(monotonicMs: number): void {
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }
}

/** Lets promise callbacks and immediate events run. */
async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}
