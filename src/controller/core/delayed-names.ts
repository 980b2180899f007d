/**
 * Collects names, and passes all of them on after one delay. The delay begins with the first name. A name that is added
 * several times meanwhile is passed on once.
 */

import type { Clock } from "../../lib/clock.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";

export interface DelayedNamesOptions {
  readonly clock: Clock;
  readonly delayMs: number;
  /** Called when the delay is over. */
  readonly due: (names: readonly ObjectName[]) => void;
}

export class DelayedNames {
  readonly #options: DelayedNamesOptions;
  readonly #stopped = new AbortController();
  #names = new Map<string, ObjectName>();

  constructor(options: DelayedNamesOptions) {
    this.#options = options;
  }

  add(names: readonly ObjectName[]): void {
    if (names.length > 0 && this.#names.size === 0) void this.#wait();
    for (const name of names) this.#names.set(objectKey(name), name);
  }

  /** Cancels the delay and drops the names that wait; idempotent. */
  stop(): void {
    this.#stopped.abort();
  }

  async #wait(): Promise<void> {
    const { clock, delayMs, due } = this.#options;
    await clock.sleep(delayMs, this.#stopped.signal);
    const names = [...this.#names.values()];
    this.#names = new Map();
    if (!this.#stopped.signal.aborted) due(names);
  }
}
