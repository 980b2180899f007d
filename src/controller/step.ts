/** A step: its plan, what the planner collects while it plans the step, and its metrics. */

import type { DocumentChange } from "../model/feed.ts";
import type { GroupDocument } from "../model/objects/documents.ts";
import type { ProfileContent } from "../model/objects/profile.ts";
import type { ObjectName, ObjectStatus } from "../model/objects/source.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { DocumentWrite } from "./core/documents.ts";
import { byKey } from "./core/names.ts";
import type { GroupDraft } from "./reconcile/draft-group.ts";
import type { Findings } from "./status/conditions.ts";
import type { GroupChange, TombstoneWrite } from "./tombstones/tombstones.ts";

/** The result for one name. */
export interface Planned {
  readonly name: ObjectName;
  /** Undefined for an object that is gone. */
  readonly status: ObjectStatus | undefined;
  /** True when the step removes the documents of an object that is gone. */
  readonly isRemoved: boolean;
  /** The findings that the status sums up; undefined if davit did not check the object's spec. */
  readonly reported?: Findings | undefined;
}

/** What to write in one step, in this order, and what to do afterwards. */
export interface Step {
  readonly planned: readonly Planned[];
  readonly writes: readonly DocumentWrite[];
  /** The namespace of each tombstone's object, for the tombstones that the step writes or removes. */
  readonly moved: readonly string[];
  /** Other objects to look at again. */
  readonly alsoLookAt: readonly ObjectName[];
  /** Profiles whose Groups changed: only their `groupCount` may change. */
  readonly recount: readonly ObjectName[];
}

/** The facts about a Group that do not depend on other Groups. */
export interface GroupPlan {
  readonly id: ObjectName;
  readonly stored: GroupDocument | undefined;
  /** Undefined if the Group is gone or not in view now, or if davit failed on it. */
  readonly draft: GroupDraft | undefined;
  /** The document that the store should have. */
  readonly document: GroupDocument | undefined;
  readonly twin: GroupDocument | undefined;
  /** The status of a Group on which davit failed. */
  readonly failed?: ObjectStatus;
}

/** A step while it is planned. */
export class Draft {
  readonly planned: Planned[] = [];
  readonly changes: DocumentChange[] = [];
  /** Tombstones of Profiles and Machines. */
  readonly tombstones: TombstoneWrite[] = [];
  readonly groupChanges: GroupChange[] = [];
  /** The new contents of this step's Profiles, by their keys. */
  readonly contents = new Map<string, ProfileContent>();
  /** By key, like the two maps below. */
  readonly names: Map<string, ObjectName>;
  readonly alsoLookAt = new Map<string, ObjectName>();
  readonly recount = new Map<string, ObjectName>();

  constructor(names: Iterable<ObjectName>) {
    this.names = byKey(names);
  }
}

const controllers = ["profile", "group", "machine"] as const;

/** Counts reconciles under the metric names of controller-runtime, with one `controller` label for each kind. */
export class StepMetrics {
  readonly #clock: ControllerOptions["clock"];
  readonly #metrics: ControllerOptions["metrics"];

  constructor({ clock, metrics }: Pick<ControllerOptions, "clock" | "metrics">) {
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
