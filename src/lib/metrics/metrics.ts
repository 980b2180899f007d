/**
 * Every metric of davit; `store-metrics.ts` has those of the store. davit's own names are
 * `davit_<part>_<what>_<unit|total>`. A metric's labels have values from fixed sets, so that no machine can increase
 * the number of series.
 */

import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { assetMetrics, bootMetrics, type CountedChange, listenerMetrics } from "./boot-metrics.ts";
import { type Define, definingIn } from "./define.ts";
import { storeMetrics } from "./store-metrics.ts";

/** The metrics, which all parts set. `text()` returns them in the form of a scrape. */
export type Metrics = ReturnType<typeof createMetrics>;

// A step of one object takes a millisecond and a write to the log. The first step of 10,000 objects takes seconds.
const stepSecondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Makes a registry with every metric at zero. */
export function createMetrics(version: string) {
  const registry = new Registry();
  const define = definingIn(registry);
  collectDefaultMetrics({ register: registry });
  define.gauge("davit_build_info", "1, labelled with the version.", "version").set({ version }, 1);
  return {
    ...bootMetrics(define),
    ...assetMetrics(define),
    ...listenerMetrics(define),
    ...signingMetrics(define),
    ...storeMetrics(define),
    ...ledgerMetrics(define),
    ...followMetrics(define),
    ...controllerMetrics(define),
    ...kubernetesMetrics(define),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    /** Adds a change of a counter or a gauge that another thread has counted. */
    add: ({ name, labels, by }: CountedChange) => {
      const metric = registry.getSingleMetric(name);
      if (metric instanceof Counter || metric instanceof Gauge) metric.inc(labels, by);
    },
  };
}

function signingMetrics({ gauge, counter }: Define) {
  const signatures = counter(
    "davit_signatures_total",
    "Signatures, by whether the key made them or they were known.",
    "from",
  );
  for (const from of ["key", "cache"]) signatures.inc({ from }, 0);
  const signingKeyExpiry = gauge(
    "davit_signing_key_expiry_timestamp_seconds",
    "When a signing key ends, Unix time; 0 for never, and without a key.",
    "key",
  );
  const signingKeyProblem = gauge(
    "davit_signing_key_problem",
    "1 while the files of a signing key cannot be used and the last good key signs.",
    "key",
  );
  // The main key has no label. GRUB's key has one, and gets a series only if it exists.
  for (const each of [signingKeyExpiry, signingKeyProblem]) each.set(0);
  return {
    signatures,
    signaturesWithheld: counter(
      "davit_boot_signatures_withheld_total",
      "Signatures that were asked for and not made, because GRUB could run text of the request in the config.",
    ),
    signingKeyExpiry,
    signingKeyProblem,
  };
}

function ledgerMetrics({ gauge, counter, absent }: Define) {
  return {
    ledgerWritable: absent(
      "davit_ledger_writable",
      "1 while installs can be claimed and reported, 0 while they wait; absent in davit boot.",
    ),
    ledgerEntries: gauge(
      "davit_ledger_machines",
      "Machines in the ledger, by the state of their last install.",
      "state",
    ),
    installs: counter(
      "davit_installs_total",
      "Installs that came to this result; of several members only the leader counts.",
      "result",
    ),
  };
}

function followMetrics({ gauge, counter, absent }: Define) {
  return {
    followConnected: absent(
      "davit_follow_connected",
      "1 while the store is followed, 0 while the last copy is served without it; absent in davit serve.",
    ),
    followAgeSeconds: gauge(
      "davit_follow_age_seconds",
      "Time since the copy was last known to be what the store has; 0 before there is a copy.",
    ),
    followIndex: gauge("davit_follow_index", "Index of the copy of the store."),
    followHistoryDropped: counter(
      "davit_follow_history_dropped_total",
      "Answered requests of machines that the history of this follower has, and that of its writer lacks.",
    ),
  };
}

/** Metrics with the names of controller-runtime, which dashboards know. `controller` is a kind in lower case. */
function reconcileMetrics({ gauge, counter, histogram }: Define) {
  return {
    reconciles: counter(
      "controller_runtime_reconcile_total",
      "Reconciles by controller and result.",
      "controller",
      "result",
    ),
    reconcileErrors: counter(
      "controller_runtime_reconcile_errors_total",
      "Reconciles that davit retries, because the store refused their result.",
      "controller",
    ),
    reconcileTerminalErrors: counter(
      "controller_runtime_terminal_reconcile_errors_total",
      "Reconciles of objects that are not accepted: only a change of the object helps.",
      "controller",
    ),
    reconcileSeconds: histogram(
      "controller_runtime_reconcile_time_seconds",
      "Time of the step that a reconcile was part of, the write of the log included.",
      stepSecondsBuckets,
      "controller",
    ),
    reconcileWorkers: gauge(
      "controller_runtime_active_workers",
      "1 while objects of this kind are reconciled.",
      "controller",
    ),
    reconcileMaxWorkers: gauge(
      "controller_runtime_max_concurrent_reconciles",
      "Steps at a time: one, for all kinds together, of as many objects as wait.",
      "controller",
    ),
  };
}

/** Metrics with the names of client-go. `name` is `objects` or `statuses`. */
function queueMetrics({ gauge, counter, histogram }: Define) {
  const seconds = (name: string, help: string) => histogram(name, help, stepSecondsBuckets, "name");
  return {
    queueDepth: gauge("workqueue_depth", "Names that wait.", "name"),
    queueAdds: counter("workqueue_adds_total", "Names added, those that waited already included.", "name"),
    queueRetries: counter("workqueue_retries_total", "Names added again after a failure.", "name"),
    queueSeconds: seconds("workqueue_queue_duration_seconds", "How long a name waited."),
    queueWorkSeconds: seconds("workqueue_work_duration_seconds", "How long the work on what was taken together took."),
    queueUnfinishedSeconds: gauge(
      "workqueue_unfinished_work_seconds",
      "Time spent on names that are worked on now.",
      "name",
    ),
    queueLongestSeconds: gauge(
      "workqueue_longest_running_processor_seconds",
      "How long the current work has taken so far.",
      "name",
    ),
  };
}

function controllerMetrics(define: Define) {
  const { gauge, counter } = define;
  return {
    ...reconcileMetrics(define),
    ...queueMetrics(define),
    resources: gauge(
      "davit_resources",
      "Objects by kind and whether they are ready; held Groups wait on purpose.",
      "kind",
      "ready",
    ),
    machines: gauge("davit_machines", "Machine objects by the phase that their status shows.", "phase"),
    pendingMachines: gauge("davit_pending_machines", "Enrolled machines that wait for a person; at most 1,000."),
    enrolmentsRefused: counter(
      "davit_enrolments_refused_total",
      "Unknown machines that davit did not enroll: faster than the rate, full, or the API server failed.",
      "reason",
    ),
    sourceProblems: gauge("davit_source_problems", "Files and documents of the source that cannot be used."),
    withheldDeletions: gauge(
      "davit_withheld_deletions",
      "Objects that are not found and stay in effect, since part of the source cannot be read.",
    ),
  };
}

// The buckets of client-go, because the metric has client-go's name and dashboards know it.
const restClientSecondsBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

function kubernetesMetrics({ gauge, counter, histogram }: Define) {
  return {
    watchConnected: gauge(
      "davit_watch_connected",
      "1 while every watch of the resource is connected to the API server; absent without a cluster.",
      "resource",
    ),
    watchRestarts: counter(
      "davit_watch_restarts_total",
      "Lists and watches that ended other than in good order, by reason.",
      "reason",
    ),
    relists: counter("davit_relists_total", "Full lists from the API server."),
    cacheAgeSeconds: gauge(
      "davit_cache_age_seconds",
      "Time since the API server was last heard, by the watch that has waited longest.",
    ),
    restClientRequests: counter(
      "rest_client_requests_total",
      "Requests to the API server by status code, method and host.",
      "code",
      "method",
      "host",
    ),
    restClientRequestSeconds: histogram(
      "rest_client_request_duration_seconds",
      "Time from a request to the head of its answer.",
      restClientSecondsBuckets,
      "verb",
      "host",
    ),
  };
}
