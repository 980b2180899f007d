/**
 * Names that wait for work. Adding a name that already waits changes nothing. Adding a name that is worked on makes it
 * wait again. Failed names return after a delay that grows with each failure; names that failed together return
 * together. `retryLimit` bounds all retries. The queue holds each name once, so the number of objects bounds it. One
 * worker takes from it.
 */

import { backoffMs } from "../../lib/backoff.ts";
import { type Clock, earliest } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";

export type WorkQueueMetrics = Pick<
  Metrics,
  | "queueDepth"
  | "queueAdds"
  | "queueRetries"
  | "queueSeconds"
  | "queueWorkSeconds"
  | "queueUnfinishedSeconds"
  | "queueLongestSeconds"
>;

export interface WorkQueueOptions<Item> {
  readonly clock: Clock;
  readonly keyOf: (item: Item) => string;
  /** A label of the metrics, so from a closed set. */
  readonly name: "objects" | "statuses" | "trials";
  readonly metrics: WorkQueueMetrics;
}

interface Working {
  readonly count: number;
  readonly sinceMs: number;
  /** When the first of them was added, or an earlier time if one may have been true earlier. */
  readonly addedAtMs: number;
}

interface WaitingItem<Item> {
  readonly item: Item;
  readonly sinceMs: number;
  /** Reported together with others: all such names are taken at once. */
  readonly isReported: boolean;
}

// client-go's item backoff starts at 5 ms; the cap keeps a recovered disk from waiting longer than a person would.
const retryDelays = { firstMs: 5, capMs: 30_000 };
// client-go's overall limit (util/workqueue, BucketRateLimiter): a first try never waits for it.
const retryLimit = { perSecond: 10, burst: 100 };

export class WorkQueue<Item> {
  readonly #options: WorkQueueOptions<Item>;
  readonly #limit: TokenBucket;
  readonly #waiting = new Map<string, WaitingItem<Item>>();
  readonly #failures = new Map<string, number>();
  /** Monotonic: the earliest time at which the changes that wait together may have been true. */
  #newsSinceMs: number | undefined;
  readonly #stopped = new AbortController();
  #wake: (() => void) | undefined;
  /** The names that were taken last and are worked on. */
  #working: Working | undefined;
  /** When the first failure came since the last time that nothing was failing. */
  #failingSinceMs: number | undefined;

  constructor(options: WorkQueueOptions<Item>) {
    this.#options = options;
    this.#limit = new TokenBucket({ clock: options.clock, ...retryLimit });
    const { metrics, name } = options;
    metrics.queueAdds.inc({ name }, 0);
    metrics.queueRetries.inc({ name }, 0);
    this.measure();
  }

  get depth(): number {
    return this.#waiting.size;
  }

  /** Monotonic: every name that was added before is finished; undefined while no name waits. */
  get unfinishedSinceMs(): number | undefined {
    // Names wait in order of arrival.
    const waiting = this.#waiting.values().next().value?.sinceMs;
    return earliest(waiting, this.#newsSinceMs, this.#working?.addedAtMs, this.#failingSinceMs);
  }

  /** Adds a name independent of others. `take` returns as many of these as its limit allows. */
  add(item: Item): void {
    this.#add(item, false);
  }

  /**
   * Adds names that are true only together. `take` returns all of them at once, with every other waiting name of this
   * kind: a reader that sees only some of them sees a state that never existed.
   * @param sinceMs monotonic, since when they may be true; now by default.
   */
  addTogether(items: Iterable<Item>, sinceMs?: number): void {
    for (const item of items) {
      this.#newsSinceMs = earliest(this.#newsSinceMs, sinceMs);
      this.#add(item, true);
    }
  }

  /** Adds names that failed together again. The delay doubles with each failure in a row of one of them. */
  retryLater(items: readonly Item[]): void {
    if (items.length === 0) return;
    const { clock, metrics, name } = this.#options;
    const sinceMs = this.#working?.addedAtMs ?? clock.monotonicMs();
    this.#failingSinceMs = earliest(sinceMs, this.#failingSinceMs);
    const failures = items.reduce((most, item) => Math.max(most, this.#fail(item)), 0);
    const delayMs = Math.max(backoffMs(failures, retryDelays), this.#limit.reserveMs());
    metrics.queueRetries.inc({ name }, items.length);
    void clock.sleep(delayMs, this.#stopped.signal).then(() => {
      if (!this.#stopped.signal.aborted) this.addTogether(items);
    });
  }

  /** Resets a name's count of failures in a row. */
  succeeded(item: Item): void {
    this.#failures.delete(this.#options.keyOf(item));
    if (this.#failures.size === 0) this.#failingSinceMs = undefined;
  }

  /**
   * Waits for work, then takes all names that were reported together and up to `limit` others, in order of arrival.
   * Empty once stopped.
   */
  async take(limit: number): Promise<readonly Item[]> {
    this.#finish();
    while (this.#waiting.size === 0 && !this.#stopped.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#stopped.signal.aborted) return [];
    const { clock, metrics, name } = this.#options;
    const nowMs = clock.monotonicMs();
    const taken: Item[] = [];
    let others = 0;
    let addedAtMs = nowMs;
    for (const [key, { item, sinceMs, isReported }] of this.#waiting) {
      if (!isReported && others++ >= limit) continue;
      this.#waiting.delete(key);
      taken.push(item);
      addedAtMs = Math.min(addedAtMs, sinceMs);
      metrics.queueSeconds.observe({ name }, (nowMs - sinceMs) / 1_000);
    }
    this.#working = { count: taken.length, sinceMs: nowMs, addedAtMs: Math.min(addedAtMs, this.#newsSinceMs ?? nowMs) };
    this.#newsSinceMs = undefined;
    return taken;
  }

  /** Ends every wait, now and later. */
  stop(): void {
    this.#stopped.abort();
    this.#wake?.();
  }

  /** Sets the metrics that are only known when they are scraped. */
  measure(): void {
    const { metrics, name } = this.#options;
    const runningSeconds = this.#runningSeconds();
    metrics.queueDepth.set({ name }, this.#waiting.size);
    metrics.queueUnfinishedSeconds.set({ name }, runningSeconds * (this.#working?.count ?? 0));
    metrics.queueLongestSeconds.set({ name }, runningSeconds);
  }

  #add(item: Item, isReported: boolean): void {
    const { clock, keyOf, metrics, name } = this.#options;
    const key = keyOf(item);
    const before = this.#waiting.get(key);
    const sinceMs = before?.sinceMs ?? clock.monotonicMs();
    this.#waiting.set(key, { item, sinceMs, isReported: isReported || before?.isReported === true });
    metrics.queueAdds.inc({ name });
    this.#wake?.();
  }

  /** @returns how often it had failed in a row before. */
  #fail(item: Item): number {
    const key = this.#options.keyOf(item);
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return failures;
  }

  #finish(): void {
    const { metrics, name } = this.#options;
    if (this.#working !== undefined) metrics.queueWorkSeconds.observe({ name }, this.#runningSeconds());
    this.#working = undefined;
  }

  #runningSeconds(): number {
    return this.#working === undefined ? 0 : (this.#options.clock.monotonicMs() - this.#working.sinceMs) / 1_000;
  }
}
