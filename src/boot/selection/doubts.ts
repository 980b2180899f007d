/** Finds why an Install may be wrong for a machine now. */

import type { Labels } from "../../model/labels/labels.ts";
import { isCatchAll, matches } from "../../model/objects/group.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { type LedgerEntry, type ReportedLabel, stillCounts, verdictOf } from "../../model/permits/permit.ts";
import { recognised } from "../../model/permits/recognised.ts";
import type { CommonDoubt, Doubt } from "../../model/refusals.ts";
import { isAlike, isSameOutcome } from "../../model/selection/contest.ts";
import { namesMachine } from "../../model/selection/specificity.ts";
import type { BootGroup } from "../core/known-documents.ts";
import type { BootLedger } from "../core/selected.ts";
import { type ChosenAsker, namespaceOf, type World } from "./asker.ts";
import { askOf } from "./gate.ts";

/** In the order of what a person has to correct first. With an install plan, the verdict on the permit covers some. */
const objectDoubts: readonly (readonly [Doubt, (chosen: ChosenAsker, world: World) => boolean])[] = [
  ["refusedMachine", ({ own }) => own.machine?.isRefused === true],
  ["leavingMachine", ({ own }) => own.machine?.isLeaving === true],
  ["goneMachine", waitsForMachine],
  ["flawedGroup", ({ group }) => group.flaw !== undefined],
  ["outdatedGroup", (chosen, world) => chosen.group.isOutdated || mayBeGone(chosen, world)],
  ["outdatedProfile", ({ profile }) => profile.isOutdated],
  ["identity", ({ labels }, world) => mayMatter(labels, world)],
  ["otherMachine", (chosen, { ledger }) => ledger !== undefined && !hasPlan(chosen) && !isRecognised(chosen, ledger)],
  ["unknownReports", (chosen, world) => !hasPlan(chosen) && mayMissReports(world)],
  ["otherReports", (chosen, { ledger }) => ledger !== undefined && differsFromReports(chosen, ledger)],
  [
    "namesakes",
    ({ group, labels }, { selectors }) =>
      selectors.namesakesOf(group, labels).some((other) => !isSameOutcome(group, other)),
  ],
  ["settling", ({ group }, { settling }) => settling.isUnderWay() && isCatchAll(group)],
];

/** Returns the first doubt about an Install; undefined if there is none. */
export function doubtOf(chosen: ChosenAsker, world: World): Doubt | undefined {
  return objectDoubts.find(([, holds]) => holds(chosen, world))?.[0] ?? commonDoubt(world);
}

/** Returns the doubt that keeps every machine from an Install now; undefined if there is none. */
export function commonDoubt({ known, freshness }: World): CommonDoubt | undefined {
  const { half = false, changing = false } = known.synced ?? {};
  if (half || changing) return half ? "half" : "changing";
  return known.unreadable.size > 0 ? "unreadable" : freshness?.staleness;
}

/**
 * True if a Machine of the request was removed or changed a moment ago. But a grant of the newest Machine, or of a
 * Group that names the machine, says what this machine may do now: false if such a grant opens the install or has
 * opened it.
 */
function waitsForMachine({ group, own, asked, profile }: ChosenAsker, { known, ledger }: World): boolean {
  if (!known.machines.hasGone(asked, namespaceOf(group))) return false;
  const plan = profile.content.install;
  if (plan === undefined || ledger === undefined) return true;
  const named = namesMachine(group) ? group : { ...group, permits: undefined };
  const ask = askOf({ group: named, profile }, { labels: asked, machine: own.machine }, "config", plan);
  if (verdictOf({ ...ask, purpose: "script" }, ledger).kind === "claim") return false;
  const begun = verdictOf(ask, ledger);
  return begun.kind !== "granted" || ask.grants.every(({ key }) => key !== begun.entry.grant?.key);
}

/**
 * True for a Group that nothing in the source defines any more, unless another Group that is alike and has the same
 * outcome selects the machine. A user who renames a Group can create the new one before deleting the old one.
 */
function mayBeGone({ group, labels }: ChosenAsker, { selectors }: World): boolean {
  if (!group.isLeaving) return false;
  const stays = (other: BootGroup) => !other.isLeaving && isAlike(group, other) && isSameOutcome(group, other);
  const isCopy = (other: BootGroup) => stays(other) && matches(other, labels);
  return !selectors.listsFor(labels).some((groups) => groups.some(isCopy));
}

function hasPlan({ profile }: ChosenAsker): boolean {
  return profile.content.install !== undefined;
}

function isRecognised({ asked, own: { machine } }: ChosenAsker, ledger: BootLedger): boolean {
  const listed = machine?.document.spec.identities;
  return recognised({ identities: identitiesOf(asked), ...(listed && { listed }) }, ledger).isClear;
}

function mayMissReports({ known, ledger }: World): boolean {
  return ledger?.mayMissReports === true && (ledger.hasReports === true || known.takesReports);
}

/** What the request or the Machine says goes before any report. */
function differsFromReports({ asked, labels, sole, own: { machine } }: ChosenAsker, ledger: BootLedger): boolean {
  const identities = new Set([...(machine?.document.spec.identities ?? []), ...identitiesOf(asked)]);
  const isGiven = (name: string) => asked.has(name) || sole.machine?.labels.some(([own]) => own === name) === true;
  const differs = ([name, label]: readonly [string, ReportedLabel]) =>
    labels.get(name) !== label.value && !isGiven(name) && stillCounts(label, ledger.nowMs);
  return ledger
    .entriesOf([...identities])
    .some((entry: LedgerEntry) => Object.entries(entry.labels ?? {}).some(differs));
}

/** True if a Group selects by an unreadable label of the request, or a Group that was removed a moment ago did. */
export function mayMatter({ flaws }: Labels, { known, selectors }: World): boolean {
  if (flaws === undefined) return false;
  return [...flaws.unreadable].some((label) => selectors.speaksOf(label) || known.hasTombstones(label));
}
