/**
 * The metrics of the boot service and of the listeners. Each further boot thread counts some of them itself. The first
 * thread adds these counts to its own.
 */

import { Counter, Gauge, Registry } from "prom-client";
import { requestMetrics } from "./request-metrics.ts";

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
  const registers = [registry];
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
  return { ...bootMetrics(registers), ...assetMetrics(registers), ...listenerMetrics(registers), changes };
}

export function bootMetrics(registers: Registry[]) {
  const historyWritable = new Gauge({
    name: "davit_boot_history_writable",
    help: "1 while the history of boots is written to disk, 0 while it is only in memory; absent without a directory.",
    registers,
  });
  historyWritable.remove();
  const auditWritable = new Gauge({
    name: "davit_audit_writable",
    help: "1 while the audit log is written to its file, 0 while its lines wait; absent without a file.",
    registers,
  });
  auditWritable.remove();
  return {
    historyWritable,
    auditWritable,
    ...requestMetrics(registers),
    bootRefusals: new Counter({
      name: "davit_boot_refusals_total",
      help: "Configs and signatures that machines asked for and did not get, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    installDoubt: new Gauge({
      name: "davit_install_doubt",
      help: "1 while Profiles with effect Install are answered 503, by why; those of one object are no part of it.",
      labelNames: ["doubt"],
      registers,
    }),
    sourceStalenessSeconds: new Gauge({
      name: "davit_source_staleness_seconds",
      help: "Time since the source confirmed what is served; since the start while it has not. See --max-staleness.",
      registers,
    }),
    auditLost: new Counter({
      name: "davit_audit_lost_total",
      help: "Lines of the audit log that were dropped, because its file could not be written, or davit failed on them.",
      registers,
    }),
    historyLost: new Counter({
      name: "davit_boot_history_lost_total",
      help: "Answered requests of machines that came faster than the history could record them, and are not in it.",
      registers,
    }),
    bootThreads: new Gauge({
      name: "davit_boot_threads",
      help: "Threads that answer machines now; see --boot-threads.",
      registers,
    }),
    bootThreadsLost: new Counter({
      name: "davit_boot_threads_lost_total",
      help: "Threads that ended by a fault of davit or because memory ran out, and were replaced.",
      registers,
    }),
    stuckMachines: new Gauge({
      name: "davit_boot_stuck_machines",
      help: "Machines that boot again and again (looping), or were refused with 5xx for half an hour (waiting).",
      labelNames: ["state"],
      registers,
    }),
    opsUnauthorized: new Counter({
      name: "davit_ops_unauthorized_total",
      help: "Requests for what the operations port shows behind its door that were refused.",
      registers,
    }),
  };
}

export function assetMetrics(registers: Registry[]) {
  return {
    assetStreams: new Gauge({ name: "davit_boot_asset_streams", help: "Downloads of assets running now.", registers }),
    assetMismatches: new Counter({
      name: "davit_boot_asset_mismatches_total",
      help: "Requests that were refused because the asset has another SHA-256 than they name.",
      registers,
    }),
    profileAssets: new Gauge({
      name: "davit_profile_assets",
      help: "Files that Profiles list as assets, by the state that the condition AssetsReady has for each.",
      labelNames: ["state"],
      registers,
    }),
    assetCacheBytes: new Gauge({
      name: "davit_boot_asset_cache_bytes",
      help: "Memory of assets that are kept, or being sent from there.",
      registers,
    }),
    assetCacheHits: new Counter({
      name: "davit_boot_asset_cache_hits_total",
      help: "Pieces of assets, of up to 1 MiB, that were in memory or already being read.",
      registers,
    }),
    assetCacheMisses: new Counter({
      name: "davit_boot_asset_cache_misses_total",
      help: "Pieces of assets, of up to 1 MiB, that were read from their file.",
      registers,
    }),
  };
}

/** Metrics of all three listeners: for machines, for the store's clients, and for operators. */
export function listenerMetrics(registers: Registry[]) {
  return {
    bootConnectionsRefused: new Counter({
      name: "davit_boot_connections_refused_total",
      help: "Connections of machines that were turned away.",
      registers,
    }),
    storeConnectionsRefused: new Counter({
      name: "davit_store_connections_refused_total",
      help: "Connections of the store's clients that were turned away.",
      registers,
    }),
    opsConnectionsRefused: new Counter({
      name: "davit_ops_connections_refused_total",
      help: "Connections to the operations port that were turned away, or closed for others.",
      registers,
    }),
    unsentBytes: new Gauge({
      name: "davit_unsent_bytes",
      help: "Memory of answers that clients have not read yet, by listener: boot, store, ops.",
      labelNames: ["listener"],
      registers,
    }),
  };
}
