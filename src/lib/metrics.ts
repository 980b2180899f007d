/**
 * Every metric of davit, in one table. Names are `davit_<part>_<what>_<unit|total>`; labels come from closed sets, so
 * that no machine can grow the number of series.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The metrics that parts write; `text()` is what a scrape reads. */
export type Metrics = ReturnType<typeof createMetrics>;

// A boot answer is made in well under a millisecond; the upper buckets show a machine that waits on an asset stream.
const requestSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10];

// One fdatasync takes 0.1 ms on NVMe and 20 ms on a spinning disk.
const syncSecondsBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5];

/** Makes a registry with every metric at zero. */
export function createMetrics(version: string) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const buildInfo = new Gauge({
    name: "davit_build_info",
    help: "1, labelled with the version.",
    labelNames: ["version"],
    registers,
  });
  buildInfo.set({ version }, 1);
  return {
    ...bootMetrics(registers),
    ...storeMetrics(registers),
    ...followMetrics(registers),
    ...controllerMetrics(registers),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}

function bootMetrics(registers: Registry[]) {
  return {
    bootRequests: new Counter({
      name: "davit_boot_requests_total",
      help: "Answers of the boot service by endpoint and status code.",
      labelNames: ["endpoint", "code"],
      registers,
    }),
    bootRequestSeconds: new Histogram({
      name: "davit_boot_request_seconds",
      help: "Time from a boot request's head to the end of its answer.",
      labelNames: ["endpoint"],
      buckets: requestSecondsBuckets,
      registers,
    }),
    assetStreams: new Gauge({ name: "davit_boot_asset_streams", help: "Downloads of assets running now.", registers }),
  };
}

function storeMetrics(registers: Registry[]) {
  return {
    storeSyncSeconds: new Histogram({
      name: "davit_store_sync_seconds",
      help: "Time of one write and fdatasync of a batch of the log.",
      buckets: syncSecondsBuckets,
      registers,
    }),
    storeIndex: new Gauge({ name: "davit_store_index", help: "Changes applied to the store.", registers }),
    storeUnauthorized: new Counter({
      name: "davit_store_unauthorized_total",
      help: "Requests to the store that were refused for want of credentials.",
      registers,
    }),
    storeFollowers: new Gauge({ name: "davit_store_followers", help: "Followers of the store now.", registers }),
    storeBytes: new Gauge({
      name: "davit_store_bytes",
      help: "Names and values in the store; the quota is about these.",
      registers,
    }),
    storeWatchers: new Gauge({ name: "davit_store_watchers", help: "Watches waiting now.", registers }),
  };
}

function followMetrics(registers: Registry[]) {
  return {
    followConnected: new Gauge({
      name: "davit_follow_connected",
      help: "1 while the store is followed, 0 while the last copy is served without it.",
      registers,
    }),
    followAgeSeconds: new Gauge({
      name: "davit_follow_age_seconds",
      help: "Time since the copy was last known to be what the store has; 0 before there is a copy.",
      registers,
    }),
    followIndex: new Gauge({ name: "davit_follow_index", help: "Index of the copy of the store.", registers }),
  };
}

function controllerMetrics(registers: Registry[]) {
  return {
    controllerReconciles: new Counter({
      name: "davit_controller_reconciles_total",
      help: "Reconciles by kind and result.",
      labelNames: ["kind", "result"],
      registers,
    }),
    controllerQueueDepth: new Gauge({
      name: "davit_controller_queue_depth",
      help: "Names waiting for a reconcile.",
      registers,
    }),
    resources: new Gauge({
      name: "davit_resources",
      help: "Objects by kind and whether they are ready.",
      labelNames: ["kind", "ready"],
      registers,
    }),
    sourceProblems: new Gauge({
      name: "davit_source_problems",
      help: "Files and documents of the source that cannot be used.",
      registers,
    }),
  };
}
