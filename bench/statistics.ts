/** The few figures that benchmarks print. */

/** The middle one; the upper of two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The median of the ratios of each round: what disturbs a round disturbs both. */
export function pairedRatio(some: readonly number[], others: readonly number[]): number {
  return median(some.map((one, round) => one / (others[round] ?? Number.NaN)));
}

/** The value that so many percent do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? Number.NaN;
}

/** The latencies of many requests in two figures, in the unit that they were given in. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

export function latencyOf(values: readonly number[]): Latency {
  return { p50: percentile(values, 50), p99: percentile(values, 99), longest: percentile(values, 100) };
}
