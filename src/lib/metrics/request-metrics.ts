/**
 * The metrics of machines' requests, counted in batches. For each value prom-client makes a key of the labels and looks
 * it up: for the two metrics this took as long as finding a machine's Group. A batch takes a fifth of it.
 */

import { Counter, Histogram, type Registry } from "prom-client";

// davit makes a boot answer in much less than a millisecond. The upper buckets are for downloads of assets.
const requestSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10];

/** The most values of a series that wait: 2 KiB. */
const batchSize = 256;

export function requestMetrics(registers: Registry[]) {
  const flushes: (() => void)[] = [];
  const collect = () => {
    for (const flush of flushes) flush();
  };
  const bootRequests = new Counter({
    name: "davit_boot_requests_total",
    help: "Answers of the boot service by endpoint and status code.",
    labelNames: ["endpoint", "code"],
    registers,
    collect,
  });
  const bootRequestSeconds = new Histogram({
    name: "davit_boot_request_seconds",
    help: "Time from a boot request's head to the end of its answer.",
    labelNames: ["endpoint"],
    buckets: requestSecondsBuckets,
    registers,
    collect,
  });
  /** Returns a function that counts a request in both metrics, before the next scrape. Call it once for each series. */
  const bootRequestSeries = (endpoint: string, code: number) => {
    const counter = bootRequests.labels({ endpoint, code });
    const histogram = bootRequestSeconds.labels({ endpoint });
    let waiting: number[] = [];
    const flush = () => {
      const batch = waiting;
      waiting = [];
      counter.inc(batch.length);
      for (const seconds of batch) histogram.observe(seconds);
    };
    flushes.push(flush);
    return (seconds: number) => {
      waiting.push(seconds);
      if (waiting.length === batchSize) flush();
    };
  };
  return { bootRequests, bootRequestSeconds, bootRequestSeries };
}
