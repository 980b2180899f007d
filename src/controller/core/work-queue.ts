/**
 * Holds names that wait for work, for one worker. A name waits only once, however often it is added, so the number of
 * objects bounds the queue. If a name is added while the worker has it, the name waits again. Names that failed
 * together return together, after a delay. The delay doubles with each failure in a row, and `retryLimit` bounds the
 * rate of all retries.
 */

import { backoffMs } from "../../lib/backoff.ts";
import { type Clock, earliest } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";

type WorkQueueMetrics = Pick<
  Metrics,
  | "queueDepth"
  | "queueAdds"
  | "queueRetries"
  | "queueSeconds"
  | "queueWorkSeconds"
  | "queueUnfinishedSeconds"
  | "queueLongestSeconds"
>;

interface WorkQueueOptions<Item> {
  readonly clock: Clock;
  readonly keyOf: (item: Item) => string;
  /** The metrics' label `name`. The set of names is closed, so the number of time series is bounded. */
  readonly name: "objects" | "statuses" | "trials";
  readonly metrics: WorkQueueMetrics;
}

interface Working {
  readonly count: number;
  readonly sinceMs: number;
  /**
   * Monotonic: when the first of these names was added, or the earliest `sinceMs` of `addTogether` if that is earlier.
   */
  readonly addedAtMs: number;
}

interface WaitingItem<Item> {
  readonly item: Item;
  readonly sinceMs: number;
  /** Added by `addTogether`: one call of `take` returns all of these. */
  readonly isReported: boolean;
}

// The first delay is that of client-go. The cap makes davit try again soon after a disk has recovered.
const retryDelays = { firstMs: 5, capMs: 30_000 };
// client-go's limit on all retries together (util/workqueue, BucketRateLimiter). First tries do not count.
const retryLimit = { perSecond: 10, burst: 100 };

export class WorkQueue<Item> {
  readonly #options: WorkQueueOptions<Item>;
  readonly #limit: TokenBucket;
  readonly #waiting = new Map<string, WaitingItem<Item>>();
  /** How many of the waiting names `addTogether` added. */
  #reported = 0;
  readonly #failures = new Map<string, number>();
  /** Monotonic: the earliest `sinceMs` of the waiting names. Undefined if none was given. */
  #newsSinceMs: number | undefined;
  readonly #stopped = new AbortController();
  #wake: (() => void) | undefined;
  /** The names that the worker has now. */
  #working: Working | undefined;
  /** Monotonic: `addedAtMs` of the first work that failed. It stays until no name is failing. */
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

  /** Monotonic: all work that was added before this time is finished. Undefined while nothing waits, runs or fails. */
  get unfinishedSinceMs(): number | undefined {
    // The map keeps the order of arrival, so its first name has waited longest.
    const waiting = this.#waiting.values().next().value?.sinceMs;
    return earliest(waiting, this.#newsSinceMs, this.#working?.addedAtMs, this.#failingSinceMs);
  }

  /** True if nothing waits or has failed. The names of the last call of `take` do not count. */
  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#failures.size === 0;
  }

  /** Adds a name that does not depend on other names. `take` returns at most `limit` of these. */
  add(item: Item): void {
    this.#add(item, false);
  }

  /**
   * Adds names whose changes belong together: a reader that sees only some of them sees a state that never existed. So
   * one call of `take` returns all names that this method has added, even by several calls.
   * @param sinceMs monotonic: the changes may be as old as this. By default they are new.
   */
  addTogether(items: Iterable<Item>, sinceMs?: number): void {
    for (const item of items) {
      this.#newsSinceMs = earliest(this.#newsSinceMs, sinceMs);
      this.#add(item, true);
    }
  }

  /**
   * Adds names again, together and after a delay, because the work on them failed. The delay doubles with each failure
   * in a row. The name with the most failures decides the delay.
   */
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
   * Ends the work on the names of the last call, and waits for new work.
   * @returns all names that `addTogether` added, and at most `limit` others, in order of arrival. Empty after `stop`.
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
      // Usually no name is from `addTogether`. Looking at all of 100,000 names in each call would take minutes in all.
      if (others >= limit && this.#reported === 0) break;
      if (isReported) this.#reported--;
      else if (others++ >= limit) continue;
      this.#waiting.delete(key);
      taken.push(item);
      addedAtMs = Math.min(addedAtMs, sinceMs);
      metrics.queueSeconds.observe({ name }, (nowMs - sinceMs) / 1_000);
    }
    this.#working = { count: taken.length, sinceMs: nowMs, addedAtMs: Math.min(addedAtMs, this.#newsSinceMs ?? nowMs) };
    this.#newsSinceMs = undefined;
    return taken;
  }

  /** Ends all waiting: from now on `take` returns nothing, and failed names do not return. */
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
    const wasReported = before?.isReported === true;
    if (isReported && !wasReported) this.#reported++;
    this.#waiting.set(key, { item, sinceMs, isReported: isReported || wasReported });
    metrics.queueAdds.inc({ name });
    this.#wake?.();
  }

  /** Counts a failure. @returns how many failures in a row came before it. */
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

interface DelayedNamesOptions {
  readonly clock: Clock;
  readonly delayMs: number;
  /** Called when the delay is over. */
  readonly due: (names: readonly ObjectName[]) => void;
}

/**
 * Collects names, and passes all of them on after one delay. The delay begins with the first name. A name that is added
 * several times meanwhile is passed on once.
 */
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
