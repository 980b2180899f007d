/**
 * Makes the status of a Machine from its objects, the ledger and the machine's newest request. Times are in steps of
 * ten minutes, and progress in steps of ten percent, so that a machine that asks all the time changes its status
 * rarely. Pure.
 */

import { toRfc3339 } from "../../lib/clock.ts";
import type { GroupDocument } from "../../model/objects/documents.ts";
import { type MachineDocument, type MachinePhase, phaseOf } from "../../model/objects/machine.ts";
import {
  type Condition,
  heldReason,
  type MachineStatus,
  type ObjectName,
  type ObjectStatus,
} from "../../model/objects/source.ts";
import { type LedgerEntry, type LedgerView, type NamedGrant, refusalFor } from "../../model/permits/permit.ts";
import type { MachineSighting } from "../../model/sighting.ts";
import { namedGrant, permittedCondition } from "../permits/grants.ts";
import { refusedStatus, type SyncState, syncConditionOf, withConditions } from "../status/conditions.ts";

/** Everything that a Machine's status depends on. */
interface MachineFacts {
  readonly id: ObjectName;
  /** The status by objects alone. */
  readonly status: ObjectStatus;
  readonly document: MachineDocument | undefined;
  /** The Group that last took the machine; undefined if it is not known, or gone. */
  readonly group: { readonly id: ObjectName; readonly document: GroupDocument } | undefined;
  /** True if that Group's Profile has an `install`. */
  readonly installs: boolean;
  readonly ledger: LedgerView | undefined;
  readonly sighting: MachineSighting | undefined;
  /** True if the newest request with one of its identities was refused as ambiguous. */
  readonly isMixedUp: boolean;
  /** The Machine with which the newest request was ambiguous. */
  readonly mistaken: ObjectName | undefined;
}

/** Returns the status to show. */
export function shownMachine(facts: MachineFacts): ObjectStatus {
  const { status, ledger, document } = facts;
  const entries = document === undefined ? [] : (ledger?.entriesOf(document.spec.identities) ?? []);
  const more = [
    ...identifiedConditions(facts),
    ...(ledger?.id === undefined ? [] : ledgerConditions(facts, ledger, entries)),
  ];
  const machine = machineStatusOf(facts, latestOf(entries), entries);
  return { ...status, conditions: withConditions(status.conditions, more), machine };
}

/** The entry with the latest change. */
function latestOf(entries: readonly LedgerEntry[]): LedgerEntry | undefined {
  return entries.toSorted((a, b) => b.changedAtMs - a.changedAtMs)[0];
}

function machineStatusOf(
  facts: MachineFacts,
  entry: LedgerEntry | undefined,
  entries: readonly LedgerEntry[],
): MachineStatus {
  const { sighting } = facts;
  const group = sighting?.group ?? entry?.group;
  const profile = sighting?.profile ?? entry?.profile;
  const address = sighting?.address ?? entry?.addresses[0];
  const at = sighting && steppedTime(sighting.atMs);
  return {
    phase: shownPhase(facts, entry, entries),
    ...(at && { lastSeen: at }),
    ...(address && { address }),
    ...(group && { group }),
    ...(profile && { profile }),
    ...(sighting?.script && { rendered: sighting.script.sha256 }),
    ...(sighting && at && { boot: { at, stage: sighting.stage, result: sighting.result } }),
    ...(entry?.grant && {
      install: {
        generation: entry.grant.generation,
        state: entry.state,
        claimedAt: toRfc3339(entry.claimedAtMs).replace(/\.\d+Z$/, "Z"),
      },
    }),
    ...(entry?.reported && { reported: reportedOf(entry.reported) }),
  };
}

const stepMs = 10 * 60_000;
const progressStep = 10;

function steppedTime(atMs: number): string {
  return toRfc3339(Math.floor(atMs / stepMs) * stepMs).replace(/\.\d+Z$/, "Z");
}

function reportedOf({ state, progress, message }: NonNullable<LedgerEntry["reported"]>) {
  const stepped = progress === undefined ? {} : { progress: Math.floor(progress / progressStep) * progressStep };
  return { state, ...stepped, ...(message && { message }) };
}

function shownPhase(
  facts: MachineFacts,
  entry: LedgerEntry | undefined,
  entries: readonly LedgerEntry[],
): MachinePhase {
  const { document, group, installs, ledger, sighting } = facts;
  const isHeld = document?.spec.hold === true || group?.document.spec.hold === true;
  const needsApproval = group === undefined ? document?.spec.install === undefined : asksApproval(group.document);
  const isRefused = needsApproval && document?.spec.approved !== true;
  const isPermitted =
    ledger !== undefined &&
    grantsOf(facts).some((named) => refusalFor(named, { entries, group: groupIdOf(facts) }, ledger) === undefined);
  const isOfInstall = group === undefined || installs;
  const phase = phaseOf({
    isHeld,
    mayInstall: !isRefused && isOfInstall && isPermitted,
    entry: isRefused && entry?.state !== "Claimed" && entry?.state !== "Installing" ? undefined : entry,
    nowMs: ledger?.nowMs ?? 0,
  });
  // A machine whose Profile needs no permit.
  return phase === "Waiting" && !isRefused && sighting?.result === "served" && !installs ? "Booted" : phase;
}

function asksApproval({ spec: { approval } }: GroupDocument): boolean {
  return approval !== undefined;
}

function grantsOf({ id, document, group }: MachineFacts): readonly NamedGrant[] {
  const own = document?.spec.install;
  const ofGroup = group?.document.refused === true || group?.document.outdated === true ? undefined : group;
  const shared = ofGroup?.document.spec.install;
  return [...(own ? [namedGrant(id, own)] : []), ...(ofGroup && shared ? [namedGrant(ofGroup.id, shared)] : [])];
}

/** `namespace/name` of the Group that last took the machine; empty if it is not known. */
function groupIdOf({ group }: MachineFacts): string {
  return group === undefined ? "" : `${group.id.namespace}/${group.id.name}`;
}

/**
 * Not a reason to be unready: anybody in the boot network can send a request with the identities of two machines.
 */
function identifiedConditions({ status: { conditions }, isMixedUp, mistaken }: MachineFacts): readonly Condition[] {
  if (conditions.some(({ type, status }) => type === "Identified" && status !== "True")) return [];
  if (mistaken !== undefined) return [ambiguous(`Machine ${mistaken.namespace}/${mistaken.name}`)];
  return isMixedUp ? [ambiguous("another machine")] : [];
}

function ambiguous(other: string): Condition {
  const message = `A request had identities of this Machine and of ${other}: if it is one machine, list all here`;
  return { type: "Identified", status: "False", reason: "Ambiguous", message };
}

function ledgerConditions(
  facts: MachineFacts,
  ledger: LedgerView,
  entries: readonly LedgerEntry[],
): readonly Condition[] {
  const { id, document } = facts;
  const grant = document?.spec.install;
  const machine = { entries, group: groupIdOf(facts) };
  const installed = installedCondition(latestOf(entries));
  return grant === undefined ? [installed] : [permittedCondition(id, grant, ledger, machine), installed];
}

/** The condition `Installed` by the ledger's last entry of the machine. */
function installedCondition(entry: LedgerEntry | undefined): Condition {
  const [status, message] = installedTexts[entry?.state ?? "NeverInstalled"];
  return { type: "Installed", status, reason: entry?.state ?? "NeverInstalled", message };
}

const installedTexts = {
  NeverInstalled: ["False", "The ledger has no install of the machine"],
  Claimed: ["False", "The machine has claimed its install, and gets the boot script of the installer"],
  Installing: ["False", "The machine installs"],
  Installed: ["True", "The machine is installed, and boots from its disk"],
  Failed: ["False", "The machine reported that its install failed"],
  Unconfirmed: ["Unknown", "The install ended without a report: the machine boots from its disk"],
} as const;

interface MachineFindings {
  readonly generation: number;
  /** As in `SourceProblem.message`; undefined if the newest version is accepted. */
  readonly refusal: string | undefined;
  readonly document: MachineDocument | undefined;
  /** See `MachineIdentities.rivalOf`. */
  readonly rival: { readonly name: ObjectName; readonly identity: string } | undefined;
}

/**
 * The status of a Machine that follows from objects alone, without what the ledger and the machine itself add. `Ready`
 * is about the object: it is in effect, and names one machine. A Machine that waits for approval or for a permit is
 * ready: `kubectl wait` can ask for `Approved`, `Permitted` or `Installed`, and a GitOps controller must not fail when
 * a grant ends.
 */
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
  const message = "The machine is answered 503 while hold is true, or while davit reads a change of it";
  return { type: "Ready", status: "False", reason: heldReason, message };
}

const ready: Condition = { type: "Ready", status: "True", reason: "Ready", message: "The Machine is in effect" };
