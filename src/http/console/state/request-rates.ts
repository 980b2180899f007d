/** Samples the counters of requests every ten seconds and keeps an hour of them, for the plots of the health screen. */

import type { Clock } from "../../../lib/clock.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";

export interface RequestRatesOptions {
  readonly metrics: Pick<Metrics, "bootRequests" | "bootRequestSeconds">;
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  /** Ends the sampling. */
  readonly signal: AbortSignal;
}

/** What machines asked within one interval. */
export interface RateSample {
  /** Requests in a second. */
  readonly rate: number;
  /** Of these, answered with 5xx. */
  readonly failedRate: number;
  /**
   * 99 % of the requests, without those for assets, took at most so many seconds: the bound of a bucket. Undefined
   * without requests; infinite beyond the last bucket.
   */
  readonly p99Seconds: number | undefined;
}

export const sampleMs = 10_000;
/** An hour of samples. */
export const maxSamples = 360;

/** Counts since the start. */
interface Totals {
  readonly atMs: number;
  readonly all: number;
  readonly failed: number;
  /** By the buckets' bounds in seconds: requests that took at most so long. */
  readonly within: ReadonlyMap<number, number>;
}

/** Begins to sample. @returns the samples, to which it adds: at most `maxSamples`; the latest is last. */
export function sampleRequests(options: RequestRatesOptions): readonly RateSample[] {
  const samples: RateSample[] = [];
  void fill(samples, options);
  return samples;
}

async function fill(samples: RateSample[], options: RequestRatesOptions): Promise<void> {
  const { clock, signal } = options;
  let before = await totalsIn(options);
  for (;;) {
    await clock.sleep(sampleMs, signal);
    if (signal.aborted) return;
    const now = await totalsIn(options);
    samples.push(sampleOf(before, now));
    if (samples.length > maxSamples) samples.shift();
    before = now;
  }
}

async function totalsIn({ metrics, clock }: RequestRatesOptions): Promise<Totals> {
  const atMs = clock.monotonicMs();
  const requests = (await metrics.bootRequests.get()).values;
  const sum = (values: typeof requests) => values.reduce((total, { value }) => total + value, 0);
  const within = new Map<number, number>();
  for (const { labels, value } of (await metrics.bootRequestSeconds.get()).values) {
    // prom-client's types do not know the label of buckets.
    const { le, endpoint } = labels as { readonly le?: string | number; readonly endpoint?: string | number };
    if (le === undefined || endpoint === "assets") continue;
    const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
    within.set(bound, (within.get(bound) ?? 0) + value);
  }
  const failed = requests.filter(({ labels }) => Number(labels.code) >= 500);
  return { atMs, all: sum(requests), failed: sum(failed), within };
}

function sampleOf(before: Totals, now: Totals): RateSample {
  const seconds = Math.max(0.001, (now.atMs - before.atMs) / 1_000);
  const rateOf = (count: number) => Math.max(0, count) / seconds;
  return {
    rate: rateOf(now.all - before.all),
    failedRate: rateOf(now.failed - before.failed),
    p99Seconds: p99Of(before, now),
  };
}

function p99Of(before: Totals, now: Totals): number | undefined {
  const counts = [...now.within]
    .map(([bound, count]) => ({ bound, count: count - (before.within.get(bound) ?? 0) }))
    .toSorted((a, b) => a.bound - b.bound);
  const all = counts.at(-1)?.count ?? 0;
  return all <= 0 ? undefined : counts.find(({ count }) => count >= all * 0.99)?.bound;
}
