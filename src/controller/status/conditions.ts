/**
 * Makes conditions from the findings of a reconcile, in words for the object's author. Equal findings always give equal
 * texts.
 */

import type { Position } from "../../lib/text/position.ts";
import type { DocumentChange } from "../../model/feed.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { ProfileContent } from "../../model/objects/profile.ts";
import { type Condition, heldReason, type ObjectStatus, type Refusal } from "../../model/objects/source.ts";

/**
 * A field of an object, such as `spec.boot.args[2]`. `position` is a place in the template that the field holds or
 * names.
 */
export interface FieldPlace {
  readonly field: string;
  readonly position?: Position;
}

/** Something wrong with an object, and the condition that reports it. */
export interface Finding {
  readonly type: "Accepted" | "ResolvedRefs";
  readonly reason:
    | "InvalidTemplate"
    | "InvalidURL"
    | "UndefinedVariable"
    | "RenderFailed"
    | "TooLarge"
    | "Refused"
    | "NotPermitted"
    | "InternalError"
    | RefReason;
  readonly message: string;
  /**
   * Absent for a refused object: the code that read the object already reported the mistake. Absent also for a Group
   * whose Profile is refused or outdated, and for a bug in davit, which only the log describes.
   */
  readonly code?: FindingCode;
  readonly place?: FieldPlace;
}

/** Something allowed but probably unintended. `text` is a sentence without its full stop. */
export interface Advice {
  readonly code: FindingCode;
  readonly text: string;
  /** As in `FieldPlace`. */
  readonly field: string;
}

export type RefReason = "ProfileNotFound" | "ProfileOutdated" | "TemplateNotFound" | "KeyNotFound" | "RefNotPermitted";

/** Whether this generation is in effect, and if not, what happens instead. */
export type SyncState =
  | "synced"
  | "notServed"
  | "waiting"
  | "servingLastGood"
  | "storeUnavailable"
  | "failed"
  | "failedWithLastGood";

/** The result of a reconcile: the documents to change in one step, in this order, and the status to report. */
export interface Outcome {
  readonly changes: readonly DocumentChange[];
  /** Undefined for an object that is gone. */
  readonly status: ObjectStatus | undefined;
  /** The findings that the status sums up; undefined if davit did not check the object's spec. */
  readonly reported?: Findings;
  /** For a Profile whose spec was resolved: the content that its machines get. */
  readonly content?: ProfileContent | undefined;
  /** For a Profile: true if davit serves an older version, because it does not accept the newest one. */
  readonly isOlder?: boolean;
}

/** What a reconcile found. */
export interface Findings {
  readonly findings: readonly Finding[];
  readonly sync: SyncState;
  readonly advice: readonly Advice[];
  /** True if davit did not resolve the references. */
  readonly isUnresolved?: boolean;
  /** The condition `Conflicted`, for a Group. */
  readonly conflict?: Condition;
  /** True for a Group whose spec sets `hold`: its machines wait. */
  readonly isHeld?: boolean;
}

/**
 * The conditions of an object without findings. All such objects share these constants, because there may be 10,000.
 */
const good = {
  accepted: { type: "Accepted", status: "True", reason: "Valid", message: "The spec is valid" },
  resolved: { type: "ResolvedRefs", status: "True", reason: "Resolved", message: "Every reference is resolved" },
  ready: { type: "Ready", status: "True", reason: "Ready", message: "Machines are answered from this object" },
  held: {
    type: "Ready",
    status: "False",
    reason: heldReason,
    message: "Its machines are answered 503 while hold is true, or while davit reads a change of it",
  },
} as const satisfies Readonly<Record<string, Condition>>;

/** The conditions of an object; `Ready` copies the first one that fails. */
export function conditionsFor(found: Findings): readonly Condition[] {
  const { findings, sync, advice, isUnresolved, conflict, isHeld = false } = found;
  const summed = [
    findings.some(({ type }) => type === "Accepted") || advice.length === 0
      ? findingCondition(good.accepted, findings)
      : acceptedWithAdvice(advice),
    isUnresolved === true ? unresolved : findingCondition(good.resolved, findings),
    syncConditions[sync],
    ...(conflict === undefined ? [] : [conflict]),
  ];
  const failing = summed.find(isFailing);
  const ready: Condition =
    failing === undefined
      ? good[isHeld ? "held" : "ready"]
      : { type: "Ready", status: "False", reason: failing.reason, message: failing.message };
  return [...summed, ready];
}

/** Returns conditions with further ones, which replace those of the same type. `Ready` stays last. */
export function withConditions(conditions: readonly Condition[], more: readonly Condition[]): readonly Condition[] {
  const types = new Set(more.map(({ type }) => type));
  const others = conditions.filter(({ type }) => type !== "Ready" && !types.has(type));
  return [...others, ...more, ...conditions.filter(({ type }) => type === "Ready")];
}

/** All conditions are good when they are true, except `Conflicted`. */
function isFailing({ type, status }: Condition): boolean {
  return type === "Conflicted" ? status !== "False" : status !== "True";
}

function acceptedWithAdvice(advice: readonly Advice[]): Condition {
  const message = `The spec is valid. Advice: ${advice.map(({ text }) => text).join("; ")}`;
  return { type: "Accepted", status: "True", reason: "ValidWithAdvice", message };
}

/** The status of an object without an accepted version. */
export function refusedStatus(
  { generation, message }: Pick<Refusal, "generation" | "message">,
  sync: SyncState,
): ObjectStatus {
  const finding: Finding = { type: "Accepted", reason: "Refused", message };
  return unresolvedStatus(generation, finding, sync);
}

/** The status of an object on which davit failed. The cause is a bug in davit, and davit's log names it. */
export function failedStatus(generation: number, isServed: boolean): ObjectStatus {
  const message =
    "davit failed on this version, by a fault of its own that its log describes; it tries again by itself";
  const finding: Finding = { type: "Accepted", reason: "InternalError", message };
  return unresolvedStatus(generation, finding, isServed ? "failedWithLastGood" : "failed");
}

function unresolvedStatus(observedGeneration: number, finding: Finding, sync: SyncState): ObjectStatus {
  const reported = { findings: [finding], sync, advice: [], isUnresolved: true };
  return { observedGeneration, conditions: conditionsFor(reported) };
}

/** The status of an object whose newest version is refused. @param status of the older version that stays in effect. */
export function asRefused(status: ObjectStatus, refusal: Refusal, sync: SyncState): ObjectStatus {
  const failing = new Map(refusedStatus(refusal, sync).conditions.map((condition) => [condition.type, condition]));
  failing.delete("ResolvedRefs");
  const conditions = status.conditions.map((condition) => failing.get(condition.type) ?? condition);
  return { ...status, observedGeneration: refusal.generation, conditions };
}

const unresolved: Condition = {
  type: "ResolvedRefs",
  status: "Unknown",
  reason: "NotAccepted",
  message: "References are looked at when the spec is accepted",
};

/** The given status, changed to say that the store did not take the object's write. */
export function asStoreUnavailable(status: ObjectStatus): ObjectStatus {
  const failing = syncConditions.storeUnavailable;
  const conditions = status.conditions.map((condition): Condition => {
    if (condition.type === "Synced") return failing;
    if (condition.type !== "Ready" || condition.status !== "True") return condition;
    return { type: "Ready", status: "False", reason: failing.reason, message: failing.message };
  });
  return { ...status, conditions };
}

/** The condition `Synced`. */
export function syncConditionOf(sync: SyncState): Condition {
  return syncConditions[sync];
}

const syncConditions: Readonly<Record<SyncState, Condition>> = {
  synced: { type: "Synced", status: "True", reason: "Synced", message: "This generation is in the store" },
  notServed: notSynced("NotServed", "No machine is answered from this object"),
  waiting: notSynced("NotServed", "Its machines are answered 503, until this version is repaired"),
  servingLastGood: notSynced("ServingLastGood", "Machines still get the last good version, until this one is repaired"),
  storeUnavailable: notSynced("StoreUnavailable", "The store does not take writes now; davit tries again by itself"),
  failed: notSynced("InternalError", "Its machines are answered 503"),
  failedWithLastGood: notSynced("InternalError", "Machines still get the last good version"),
};

function notSynced(reason: string, message: string): Condition {
  return { type: "Synced", status: "False", reason, message };
}

function findingCondition(unfound: Condition & Pick<Finding, "type">, findings: readonly Finding[]): Condition {
  const { type } = unfound;
  const own = findings.filter((finding) => finding.type === type);
  const [first] = own;
  if (first === undefined) return unfound;
  return { type, status: "False", reason: first.reason, message: own.map((finding) => finding.message).join("; ") };
}
