/**
 * Names that wait for a reconcile. A name added while it waits is folded into one; a name added while it is worked on
 * waits again. Failed names come back later each time. Bounded by the number of objects: it holds each name once.
 */

import { backoffMs, type Clock } from "../lib/clock.ts";

// client-go's item backoff starts at 5 ms; the cap keeps a recovered disk from waiting longer than a person would.
const retryDelays = { firstMs: 5, capMs: 30_000 };

export class WorkQueue<Item> {
  readonly #clock: Clock;
  readonly #keyOf: (item: Item) => string;
  readonly #waiting = new Map<string, Item>();
  readonly #failures = new Map<string, number>();
  readonly #stopped = new AbortController();
  #wake: (() => void) | undefined;

  constructor({ clock, keyOf }: { readonly clock: Clock; readonly keyOf: (item: Item) => string }) {
    this.#clock = clock;
    this.#keyOf = keyOf;
  }

  get depth(): number {
    return this.#waiting.size;
  }

  add(item: Item): void {
    this.#waiting.set(this.#keyOf(item), item);
    this.#wake?.();
  }

  /** Adds a name again after its delay, which doubles with each failure in a row. */
  retryLater(item: Item): void {
    const key = this.#keyOf(item);
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    void this.#clock.sleep(backoffMs(failures, retryDelays), this.#stopped.signal).then(() => {
      if (!this.#stopped.signal.aborted) this.add(item);
    });
  }

  /** Ends a name's row of failures. */
  succeeded(item: Item): void {
    this.#failures.delete(this.#keyOf(item));
  }

  /** Waits until there is work, then takes up to `limit` names in the order they came; empty once stopped. */
  async take(limit: number): Promise<readonly Item[]> {
    while (this.#waiting.size === 0 && !this.#stopped.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#stopped.signal.aborted) return [];
    const taken: Item[] = [];
    for (const [key, item] of this.#waiting) {
      if (taken.length === limit) break;
      this.#waiting.delete(key);
      taken.push(item);
    }
    return taken;
  }

  /** Ends every wait, now and later. */
  stop(): void {
    this.#stopped.abort();
    this.#wake?.();
  }
}
