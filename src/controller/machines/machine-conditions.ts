/**
 * Makes the conditions of a Machine that follow from objects alone. `Ready` is about the object: it is in effect, and
 * names one machine. A Machine that waits for approval or for a permit is ready: `kubectl wait` can ask for `Approved`,
 * `Permitted` or `Installed`, and a GitOps controller must not fail when a grant ends. Pure.
 */

import type { MachineDocument } from "../../model/objects/machine.ts";
import { type Condition, heldReason, type ObjectName, type ObjectStatus } from "../../model/objects/source.ts";
import { refusedStatus, type SyncState, syncConditionOf } from "../status/conditions.ts";

export interface MachineFindings {
  readonly generation: number;
  /** As in `SourceProblem.message`; undefined if the newest version is accepted. */
  readonly refusal: string | undefined;
  readonly document: MachineDocument | undefined;
  /** See `MachineIdentities.rivalOf`. */
  readonly rival: { readonly name: ObjectName; readonly identity: string } | undefined;
}

/** The status of a Machine, without what the ledger and the machine itself add. */
export function machineStatus(found: MachineFindings): ObjectStatus {
  const { generation, refusal, document, rival } = found;
  const sync: SyncState = refusal === undefined ? "synced" : document === undefined ? "notServed" : "waiting";
  const summed = [
    refusal === undefined ? accepted : refusedStatus({ generation, message: refusal }, sync).conditions[0],
    syncConditionOf(sync),
    identifiedCondition(rival),
  ].filter((condition) => condition !== undefined);
  return {
    observedGeneration: generation,
    conditions: [...summed, approvedCondition(document), readyCondition(summed, document)],
  };
}

const accepted: Condition = { type: "Accepted", status: "True", reason: "Valid", message: "The spec is valid" };
const identified: Condition = {
  type: "Identified",
  status: "True",
  reason: "Identified",
  message: "No other Machine lists its uuid or one of its macs",
};
const approved: Condition = {
  type: "Approved",
  status: "True",
  reason: "Approved",
  message: "Groups with approval: Required serve the machine",
};

function identifiedCondition(rival: MachineFindings["rival"]): Condition {
  if (rival === undefined) return identified;
  const { name, identity } = rival;
  const what = identity.replace("/", " ");
  const message = `Machine ${name.namespace}/${name.name} lists its ${what}, too: remove it from one of the two`;
  return { type: "Identified", status: "False", reason: "Conflicted", message };
}

function approvedCondition(document: MachineDocument | undefined): Condition {
  if (document?.spec.approved === true) return approved;
  const effect = "Groups with approval: Required answer the machine 503";
  if (document?.refused === true) return notApproved(`${effect} until davit accepts the newest version`);
  return notApproved(`${effect} until spec.approved is true`);
}

function notApproved(message: string): Condition {
  return { type: "Approved", status: "False", reason: "NotApproved", message };
}

function readyCondition(summed: readonly Condition[], document: MachineDocument | undefined): Condition {
  const failing = summed.find(({ status }) => status !== "True");
  if (failing !== undefined) {
    return { type: "Ready", status: "False", reason: failing.reason, message: failing.message };
  }
  if (document?.spec.hold !== true) return ready;
  const message = "The machine is answered 503 until hold is false or removed";
  return { type: "Ready", status: "False", reason: heldReason, message };
}

const ready: Condition = { type: "Ready", status: "True", reason: "Ready", message: "The Machine is in effect" };
