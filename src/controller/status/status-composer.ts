/**
 * Composes the status of each object from what its reconcile reported and what its trials found. An object is not shown
 * as ready before its trials are over. Its status waits for the trials at most half a minute; after that, `Ready` is
 * unknown.
 */

import type { Clock } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { type Condition, type ObjectName, type ObjectStatus, objectKey } from "../../model/objects/source.ts";
import { DelayedNames } from "../core/work-queue.ts";

/** What trials found about an object. */
export interface TrialReport {
  /** The condition `Rendered` of a Group. */
  readonly rendered?: Condition;
  /** Replaces the `Ready` of an object that is otherwise ready; undefined if it stays ready. */
  readonly ready?: Condition | undefined;
}

interface StatusComposerOptions {
  readonly clock: Clock;
  /** What trials found; undefined while they are not over. */
  readonly foundOn: (name: ObjectName) => TrialReport | undefined;
  /** Receives the statuses. */
  readonly show: (name: ObjectName, status: ObjectStatus) => void;
}

interface ReportedStatus {
  readonly status: ObjectStatus;
  /**
   * Monotonic: since when the object waits for trials. Undefined after `found` has shown its status, or if the status
   * was shown as unready. A status that was shown in doubt keeps the time: later ones need not wait as long again.
   */
  readonly heldSinceMs: number | undefined;
  /** Set if davit showed this status before its trials were over. */
  readonly isShown?: true;
}

/** For objects that are ready except for their trials. One trial takes milliseconds, 10,000 take seconds. */
const patienceMs = 30_000;
// How often davit checks objects that have this much time or more left. 100,000 objects can wait at a time.
const longLookMs = 5_000;
/** For objects that are unready, whatever their trials find. */
const shortPatienceMs = 1_000;
// Showing one status takes about 20 µs.
const statusesPerSlice = 256;

/** The `Ready` of an object whose trials are not over. */
export const notTriedYet: Condition = {
  type: "Ready",
  status: "Unknown",
  reason: "NotRendered",
  message: "What its machines would get is still being tried",
};

export class StatusComposer {
  readonly #options: StatusComposerOptions;
  readonly #reported = new Map<string, ReportedStatus>();
  readonly #patience: DelayedNames;
  /** For objects that have `longLookMs` or more left. */
  readonly #longPatience: DelayedNames;
  #isStopped = false;

  constructor(options: StatusComposerOptions) {
    this.#options = options;
    const due = (names: readonly ObjectName[]) => void this.#showAnyway(names);
    this.#patience = new DelayedNames({ clock: options.clock, delayMs: shortPatienceMs, due });
    this.#longPatience = new DelayedNames({ clock: options.clock, delayMs: longLookMs, due });
  }

  /** Stops showing the statuses that still wait; idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.#patience.stop();
    this.#longPatience.stop();
  }

  /** Takes the status that a reconcile reports. The status of a Group waits until `found` is called. */
  report(name: ObjectName, status: ObjectStatus): void {
    const key = objectKey(name);
    const heldSinceMs = this.#reported.get(key)?.heldSinceMs ?? this.#options.clock.monotonicMs();
    this.#reported.set(key, { status, heldSinceMs });
    if (name.kind === "Group" || !this.found(name))
      this.#wait(name, leftMsOf(status, heldSinceMs, this.#options.clock.monotonicMs()));
  }

  /**
   * Shows an object's status, with what its trials found. @returns false if the status must still wait for its trials.
   */
  found(name: ObjectName): boolean {
    const key = objectKey(name);
    const status = this.#reported.get(key)?.status;
    if (status === undefined) return true;
    const report = this.#options.foundOn(name);
    if (report === undefined && isReady(status)) return false;
    this.#reported.set(key, { status, heldSinceMs: undefined });
    this.#options.show(name, compose(status, report));
    return true;
  }

  forget(name: ObjectName): void {
    this.#reported.delete(objectKey(name));
  }

  /** Shows statuses that waited too long. If `Ready` was true, it becomes unknown. */
  async #showAnyway(names: readonly ObjectName[]): Promise<void> {
    const slices = new Slices(statusesPerSlice);
    const nowMs = this.#options.clock.monotonicMs();
    for (const name of names) {
      this.#showIfOverdue(name, nowMs);
      if (slices.isOver(1)) await nextTurn();
      if (this.#isStopped) return;
    }
  }

  /** Schedules the next check of an object: before `leftMs` is over, or within a second. */
  #wait(name: ObjectName, leftMs: number): void {
    (leftMs >= longLookMs ? this.#longPatience : this.#patience).add([name]);
  }

  #showIfOverdue(name: ObjectName, nowMs: number): void {
    const key = objectKey(name);
    const { status, heldSinceMs, isShown } = this.#reported.get(key) ?? {};
    if (status === undefined || heldSinceMs === undefined || isShown) return;
    const leftMs = leftMsOf(status, heldSinceMs, nowMs);
    if (leftMs > 0) {
      this.#wait(name, leftMs);
      return;
    }
    this.#reported.set(key, { status, heldSinceMs: isReady(status) ? heldSinceMs : undefined, isShown: true });
    this.#options.show(name, compose(status, { ready: notTriedYet }));
  }
}

/** How much longer an object may wait for its trials. */
function leftMsOf(status: ObjectStatus, heldSinceMs: number, nowMs: number): number {
  return (isReady(status) ? patienceMs : shortPatienceMs) - (nowMs - heldSinceMs);
}

/** Adds `Rendered` before `Ready`, so that `Ready` stays last. If `Ready` is true, the trials' `Ready` replaces it. */
function compose(status: ObjectStatus, { rendered, ready }: TrialReport = {}): ObjectStatus {
  if (rendered === undefined && ready === undefined) return status;
  const others = status.conditions.filter(({ type }) => type !== "Ready");
  const own = status.conditions.filter(({ type }) => type === "Ready");
  const last = ready !== undefined && isReady(status) ? [ready] : own;
  return { ...status, conditions: [...others, ...(rendered === undefined ? [] : [rendered]), ...last] };
}

function isReady({ conditions }: ObjectStatus): boolean {
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}
