/** A time after which something is abandoned. It may be extended, for example by each sign of life of a connection. */

import type { Clock } from "./clock.ts";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly durationMs: number;
}

export class Deadline {
  readonly #clock: Clock;
  readonly #durationMs: number;
  readonly #passed = new AbortController();
  readonly #cancelled = new AbortController();
  #endsAtMs: number;

  /** Runs from now on. */
  constructor({ clock, durationMs }: DeadlineOptions) {
    this.#clock = clock;
    this.#durationMs = durationMs;
    this.#endsAtMs = clock.monotonicMs() + durationMs;
    void this.#run();
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#passed.signal;
  }

  get hasPassed(): boolean {
    return this.#passed.signal.aborted;
  }

  /** Lets the whole time run again from now. */
  putOff(): void {
    this.#endsAtMs = this.#clock.monotonicMs() + this.#durationMs;
  }

  /** Leaves no timer; idempotent. */
  cancel(): void {
    this.#cancelled.abort();
  }

  /** Sleeps as long as it can: a thousand extensions a second cost nothing. */
  async #run(): Promise<void> {
    const { signal } = this.#cancelled;
    for (let leftMs = this.#durationMs; leftMs > 0; leftMs = this.#endsAtMs - this.#clock.monotonicMs()) {
      await this.#clock.sleep(leftMs, signal);
      if (signal.aborted) return;
    }
    this.#passed.abort();
  }
}
