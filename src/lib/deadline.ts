/** A time limit that can be extended, for example each time a connection shows that it is alive. */

import type { Clock } from "./clock.ts";

// Without a reason, abort() makes an error with a stack, which costs more than the rest of a short deadline.
const withoutStack = "cancelled";

export class Deadline {
  readonly #clock: Clock;
  readonly #durationMs: number;
  readonly #passed = new AbortController();
  readonly #cancelled = new AbortController();
  #endsAtMs: number;

  /** Starts the time limit. */
  constructor({ clock, durationMs }: { readonly clock: Clock; readonly durationMs: number }) {
    this.#clock = clock;
    this.#durationMs = durationMs;
    this.#endsAtMs = clock.monotonicMs() + durationMs;
    void this.#run();
  }

  /** Aborts when the time is over, unless `cancel` was called. */
  get signal(): AbortSignal {
    return this.#passed.signal;
  }

  get hasPassed(): boolean {
    return this.#passed.signal.aborted;
  }

  /** Starts the time limit again. */
  putOff(): void {
    this.#endsAtMs = this.#clock.monotonicMs() + this.#durationMs;
  }

  /** Ends the timer, so that the time is never over. Idempotent. */
  cancel(): void {
    this.#cancelled.abort(withoutStack);
  }

  /** Sleeps until the known end, and again if `putOff` has moved the end. So a call of `putOff` starts no timer. */
  async #run(): Promise<void> {
    const { signal } = this.#cancelled;
    for (let leftMs = this.#durationMs; leftMs > 0; leftMs = this.#endsAtMs - this.#clock.monotonicMs()) {
      await this.#clock.sleep(leftMs, signal);
      if (signal.aborted) return;
    }
    this.#passed.abort();
  }
}
