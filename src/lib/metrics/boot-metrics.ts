/**
 * The metrics of the boot service and of the listeners. Each further boot thread counts some of them itself. The first
 * thread adds these counts to its own.
 */

import { Counter, Histogram, Registry } from "prom-client";
import { type Define, definingIn } from "./define.ts";

/** How much a counter or a gauge of a boot thread has changed. */
export interface CountedChange {
  readonly name: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly by: number;
  /** True for a gauge. The first thread subtracts the gauges of a thread that has ended. */
  readonly isGauge: boolean;
}

type MetricValues = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];

/** Returns the values of a counter or a gauge. Returns no values for other metrics. */
function countedValues({ name, type, values }: MetricValues) {
  const kind = String(type);
  if (kind !== "gauge" && kind !== "counter") return [];
  return values.map(({ labels, value }) => ({
    name,
    labels: Object.fromEntries(
      Object.entries(labels).flatMap(([label, text]) => (text === undefined ? [] : [[label, text]])),
    ),
    value,
    isGauge: kind === "gauge",
  }));
}

/** Makes the metrics that a further boot thread counts itself. The first thread adds their changes to its own. */
export function createThreadMetrics() {
  const registry = new Registry();
  const define = definingIn(registry);
  const known = new Map<string, number>();
  /** Returns what has changed since the last call. */
  const changes = async (): Promise<readonly CountedChange[]> => {
    const found: CountedChange[] = [];
    for (const { name, labels, value, isGauge } of (await registry.getMetricsAsJSON()).flatMap(countedValues)) {
      const key = `${name} ${JSON.stringify(labels)}`;
      const by = value - (known.get(key) ?? 0);
      known.set(key, value);
      if (by !== 0) found.push({ name, labels, by, isGauge });
    }
    return found;
  };
  return { ...bootMetrics(define), ...assetMetrics(define), ...listenerMetrics(define), changes };
}

export function bootMetrics(define: Define) {
  const { gauge, counter, absent } = define;
  return {
    historyWritable: absent(
      "davit_boot_history_writable",
      "1 while the history of boots is written to disk, 0 while it is only in memory; absent without a directory.",
    ),
    auditWritable: absent(
      "davit_audit_writable",
      "1 while the audit log is written to its file, 0 while its lines wait; absent without a file.",
    ),
    ...requestMetrics(define),
    bootRefusals: counter(
      "davit_boot_refusals_total",
      "Configs and signatures that machines asked for and did not get, by reason.",
      "reason",
    ),
    installDoubt: gauge(
      "davit_install_doubt",
      "1 while Profiles with effect Install are answered 503, by why; those of one object are no part of it.",
      "doubt",
    ),
    sourceStalenessSeconds: gauge(
      "davit_source_staleness_seconds",
      "Time since the source confirmed what is served; since the start while it has not. See --install-max-source-age.",
    ),
    auditLost: counter(
      "davit_audit_lost_total",
      "Lines of the audit log that were dropped, because its file could not be written, or davit failed on them.",
    ),
    historyLost: counter(
      "davit_boot_history_lost_total",
      "Answered requests of machines that came faster than the history could record them, and are not in it.",
    ),
    bootThreads: gauge("davit_boot_threads", "Threads that answer machines now; see --boot-threads."),
    bootThreadsLost: counter(
      "davit_boot_threads_lost_total",
      "Threads that ended by a fault of davit or because memory ran out, and were replaced.",
    ),
    stuckMachines: gauge(
      "davit_boot_stuck_machines",
      "Machines that boot again and again (looping), or were refused with 5xx for half an hour (waiting).",
      "state",
    ),
    opsUnauthorized: counter(
      "davit_ops_unauthorized_total",
      "Requests for what the operations port shows behind its door that were refused.",
    ),
  };
}

export function assetMetrics({ gauge, counter }: Define) {
  return {
    assetStreams: gauge("davit_boot_asset_streams", "Downloads of assets running now."),
    assetMismatches: counter(
      "davit_boot_asset_mismatches_total",
      "Requests that were refused because the asset has another SHA-256 than they name.",
    ),
    profileAssets: gauge(
      "davit_profile_assets",
      "Files that Profiles list as assets, by the state that the condition AssetsReady has for each.",
      "state",
    ),
    assetCacheBytes: gauge("davit_boot_asset_cache_bytes", "Memory of assets that are kept, or being sent from there."),
    assetCacheHits: counter(
      "davit_boot_asset_cache_hits_total",
      "Pieces of assets, of up to 1 MiB, that were in memory or already being read.",
    ),
    assetCacheMisses: counter(
      "davit_boot_asset_cache_misses_total",
      "Pieces of assets, of up to 1 MiB, that were read from their file.",
    ),
  };
}

/** Metrics of all three listeners: for machines, for the store's clients, and for operators. */
export function listenerMetrics({ gauge, counter }: Define) {
  return {
    bootConnectionsRefused: counter(
      "davit_boot_connections_refused_total",
      "Connections of machines that were turned away.",
    ),
    storeConnectionsRefused: counter(
      "davit_store_connections_refused_total",
      "Connections of the store's clients that were turned away.",
    ),
    opsConnectionsRefused: counter(
      "davit_ops_connections_refused_total",
      "Connections to the operations port that were turned away, or closed for others.",
    ),
    unsentBytes: gauge(
      "davit_unsent_bytes",
      "Memory of answers that clients have not read yet, by listener: boot, store, ops.",
      "listener",
    ),
  };
}

// davit makes a boot answer in much less than a millisecond. The upper buckets are for downloads of assets.
const requestSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10];

/** The most values of a series that wait: 2 KiB. */
const batchSize = 256;

/**
 * The metrics of machines' requests, counted in batches. For each value prom-client makes a key of the labels and looks
 * it up: for the two metrics this took as long as finding a machine's Group. A batch takes a fifth of it.
 */
function requestMetrics({ registers }: Define) {
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
