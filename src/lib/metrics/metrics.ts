/**
 * Every metric of davit; `store-metrics.ts` has those of the store. davit's own names are
 * `davit_<part>_<what>_<unit|total>`. A metric's labels have values from fixed sets, so that no machine can increase
 * the number of series.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { assetMetrics, bootMetrics, type CountedChange, listenerMetrics } from "./boot-metrics.ts";
import { storeMetrics } from "./store-metrics.ts";

/** The metrics, which all parts set. `text()` returns them in the form of a scrape. */
export type Metrics = ReturnType<typeof createMetrics>;

// A step of one object takes a millisecond and a write to the log. The first step of 10,000 objects takes seconds.
const stepSecondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

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
    ...assetMetrics(registers),
    ...listenerMetrics(registers),
    ...signingMetrics(registers),
    ...storeMetrics(registers),
    ...ledgerMetrics(registers),
    ...followMetrics(registers),
    ...controllerMetrics(registers),
    ...kubernetesMetrics(registers),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    /** Adds a change of a counter or a gauge that another thread has counted. */
    add: ({ name, labels, by }: CountedChange) => {
      const metric = registry.getSingleMetric(name);
      if (metric instanceof Counter || metric instanceof Gauge) metric.inc(labels, by);
    },
  };
}

function signingMetrics(registers: Registry[]) {
  const signatures = new Counter({
    name: "davit_signatures_total",
    help: "Signatures, by whether the key made them or they were known.",
    labelNames: ["from"],
    registers,
  });
  for (const from of ["key", "cache"]) signatures.inc({ from }, 0);
  const labelNames = ["key"] as const;
  const signingKeyExpiry = new Gauge({
    name: "davit_signing_key_expiry_timestamp_seconds",
    help: "When a signing key ends, Unix time; 0 for never, and without a key.",
    labelNames,
    registers,
  });
  const signingKeyProblem = new Gauge({
    name: "davit_signing_key_problem",
    help: "1 while the files of a signing key cannot be used and the last good key signs.",
    labelNames,
    registers,
  });
  // The main key has no label. GRUB's key has one, and gets a series only if it exists.
  for (const gauge of [signingKeyExpiry, signingKeyProblem]) gauge.set(0);
  return {
    signatures,
    signaturesWithheld: new Counter({
      name: "davit_boot_signatures_withheld_total",
      help: "Signatures that were asked for and not made, because GRUB could run text of the request in the config.",
      registers,
    }),
    signingKeyExpiry,
    signingKeyProblem,
  };
}

function ledgerMetrics(registers: Registry[]) {
  const ledgerWritable = new Gauge({
    name: "davit_ledger_writable",
    help: "1 while installs can be claimed and reported, 0 while they wait; absent in davit boot.",
    registers,
  });
  ledgerWritable.remove();
  return {
    ledgerWritable,
    ledgerEntries: new Gauge({
      name: "davit_ledger_machines",
      help: "Machines in the ledger, by the state of their last install.",
      labelNames: ["state"],
      registers,
    }),
    installs: new Counter({
      name: "davit_installs_total",
      help: "Installs that came to this result; of several members only the leader counts.",
      labelNames: ["result"],
      registers,
    }),
  };
}

function followMetrics(registers: Registry[]) {
  const followConnected = new Gauge({
    name: "davit_follow_connected",
    help: "1 while the store is followed, 0 while the last copy is served without it; absent in davit serve.",
    registers,
  });
  // The alert on 0 is only for followers, so a `davit serve` has no such series.
  followConnected.remove();
  return {
    followConnected,
    followAgeSeconds: new Gauge({
      name: "davit_follow_age_seconds",
      help: "Time since the copy was last known to be what the store has; 0 before there is a copy.",
      registers,
    }),
    followIndex: new Gauge({ name: "davit_follow_index", help: "Index of the copy of the store.", registers }),
    followHistoryDropped: new Counter({
      name: "davit_follow_history_dropped_total",
      help: "Answered requests of machines that the history of this follower has, and that of its writer lacks.",
      registers,
    }),
  };
}

/** Metrics with the names of controller-runtime, which dashboards know. `controller` is a kind in lower case. */
function reconcileMetrics(registers: Registry[]) {
  const labelNames = ["controller"] as const;
  return {
    reconciles: new Counter({
      name: "controller_runtime_reconcile_total",
      help: "Reconciles by controller and result.",
      labelNames: ["controller", "result"],
      registers,
    }),
    reconcileErrors: new Counter({
      name: "controller_runtime_reconcile_errors_total",
      help: "Reconciles that davit retries, because the store refused their result.",
      labelNames,
      registers,
    }),
    reconcileTerminalErrors: new Counter({
      name: "controller_runtime_terminal_reconcile_errors_total",
      help: "Reconciles of objects that are not accepted: only a change of the object helps.",
      labelNames,
      registers,
    }),
    reconcileSeconds: new Histogram({
      name: "controller_runtime_reconcile_time_seconds",
      help: "Time of the step that a reconcile was part of, the write of the log included.",
      labelNames,
      buckets: stepSecondsBuckets,
      registers,
    }),
    reconcileWorkers: new Gauge({
      name: "controller_runtime_active_workers",
      help: "1 while objects of this kind are reconciled.",
      labelNames,
      registers,
    }),
    reconcileMaxWorkers: new Gauge({
      name: "controller_runtime_max_concurrent_reconciles",
      help: "Steps at a time: one, for all kinds together, of as many objects as wait.",
      labelNames,
      registers,
    }),
  };
}

/** Metrics with the names of client-go. `name` is `objects` or `statuses`. */
function queueMetrics(registers: Registry[]) {
  const labelNames = ["name"] as const;
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames, registers });
  const seconds = (name: string, help: string) =>
    new Histogram({ name, help, labelNames, buckets: stepSecondsBuckets, registers });
  return {
    queueDepth: gauge("workqueue_depth", "Names that wait."),
    queueAdds: counter("workqueue_adds_total", "Names added, those that waited already included."),
    queueRetries: counter("workqueue_retries_total", "Names added again after a failure."),
    queueSeconds: seconds("workqueue_queue_duration_seconds", "How long a name waited."),
    queueWorkSeconds: seconds("workqueue_work_duration_seconds", "How long the work on what was taken together took."),
    queueUnfinishedSeconds: gauge("workqueue_unfinished_work_seconds", "Time spent on names that are worked on now."),
    queueLongestSeconds: gauge(
      "workqueue_longest_running_processor_seconds",
      "How long the current work has taken so far.",
    ),
  };
}

function controllerMetrics(registers: Registry[]) {
  return {
    ...reconcileMetrics(registers),
    ...queueMetrics(registers),
    resources: new Gauge({
      name: "davit_resources",
      help: "Objects by kind and whether they are ready; held Groups wait on purpose.",
      labelNames: ["kind", "ready"],
      registers,
    }),
    machines: new Gauge({
      name: "davit_machines",
      help: "Machine objects by the phase that their status shows.",
      labelNames: ["phase"],
      registers,
    }),
    pendingMachines: new Gauge({
      name: "davit_pending_machines",
      help: "Enrolled machines that wait for a person; at most 1,000.",
      registers,
    }),
    enrolmentsRefused: new Counter({
      name: "davit_enrolments_refused_total",
      help: "Unknown machines that davit did not enroll: faster than the rate, full, or the API server failed.",
      labelNames: ["reason"],
      registers,
    }),
    sourceProblems: new Gauge({
      name: "davit_source_problems",
      help: "Files and documents of the source that cannot be used.",
      registers,
    }),
    withheldDeletions: new Gauge({
      name: "davit_withheld_deletions",
      help: "Objects that are not found and stay in effect, since part of the source cannot be read.",
      registers,
    }),
  };
}

// The buckets of client-go, because the metric has client-go's name and dashboards know it.
const restClientSecondsBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

function kubernetesMetrics(registers: Registry[]) {
  return {
    watchConnected: new Gauge({
      name: "davit_watch_connected",
      help: "1 while every watch of the resource is connected to the API server; absent without a cluster.",
      labelNames: ["resource"],
      registers,
    }),
    watchRestarts: new Counter({
      name: "davit_watch_restarts_total",
      help: "Lists and watches that ended other than in good order, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    relists: new Counter({ name: "davit_relists_total", help: "Full lists from the API server.", registers }),
    cacheAgeSeconds: new Gauge({
      name: "davit_cache_age_seconds",
      help: "Time since the API server was last heard, by the watch that has waited longest.",
      registers,
    }),
    restClientRequests: new Counter({
      name: "rest_client_requests_total",
      help: "Requests to the API server by status code, method and host.",
      labelNames: ["code", "method", "host"],
      registers,
    }),
    restClientRequestSeconds: new Histogram({
      name: "rest_client_request_duration_seconds",
      help: "Time from a request to the head of its answer.",
      labelNames: ["verb", "host"],
      buckets: restClientSecondsBuckets,
      registers,
    }),
  };
}
