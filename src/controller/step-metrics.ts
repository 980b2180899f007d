/** Counts reconciles under the metric names of controller-runtime, with one `controller` label for each kind. */

import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics/metrics.ts";
import type { ObjectName } from "../model/objects/source.ts";
import type { Planned } from "./step.ts";

type ReconcileMetrics = Pick<
  Metrics,
  | "reconciles"
  | "reconcileErrors"
  | "reconcileTerminalErrors"
  | "reconcileSeconds"
  | "reconcileWorkers"
  | "reconcileMaxWorkers"
>;

export interface StepMetricsOptions {
  readonly clock: Clock;
  readonly metrics: ReconcileMetrics;
}

const controllers = ["profile", "group", "machine"] as const;

export class StepMetrics {
  readonly #clock: Clock;
  readonly #metrics: ReconcileMetrics;

  constructor({ clock, metrics }: StepMetricsOptions) {
    this.#clock = clock;
    this.#metrics = metrics;
    for (const controller of controllers) {
      for (const result of ["success", "error"]) metrics.reconciles.inc({ controller, result }, 0);
      metrics.reconcileErrors.inc({ controller }, 0);
      metrics.reconcileTerminalErrors.inc({ controller }, 0);
      metrics.reconcileWorkers.set({ controller }, 0);
      metrics.reconcileMaxWorkers.set({ controller }, 1);
    }
  }

  /** Begins a step for these names. @returns a function to call when the step has ended, with its results. */
  begin(names: readonly ObjectName[]): (planned: readonly Planned[], written: boolean) => void {
    const sinceMs = this.#clock.monotonicMs();
    const kinds = new Set(names.map(controllerOf));
    for (const controller of kinds) this.#metrics.reconcileWorkers.set({ controller }, 1);
    return (planned, written) => {
      const seconds = (this.#clock.monotonicMs() - sinceMs) / 1_000;
      for (const each of planned) this.#count(each, written, seconds);
      for (const controller of kinds) this.#metrics.reconcileWorkers.set({ controller }, 0);
    };
  }

  #count({ name, status }: Planned, written: boolean, seconds: number): void {
    const controller = controllerOf(name);
    const refused = status?.conditions.find(({ type, status: is }) => type === "Accepted" && is === "False");
    const isFault = refused?.reason === "InternalError";
    const isDone = written && !isFault;
    this.#metrics.reconciles.inc({ controller, result: isDone ? "success" : "error" });
    this.#metrics.reconcileSeconds.observe({ controller }, seconds);
    if (!isDone) this.#metrics.reconcileErrors.inc({ controller });
    if (refused !== undefined && !isFault) this.#metrics.reconcileTerminalErrors.inc({ controller });
  }
}

function controllerOf({ kind }: ObjectName): string {
  return kind.toLowerCase();
}
