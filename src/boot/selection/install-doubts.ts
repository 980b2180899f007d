/** Finds why a request may be another machine's, and why one Group and its Profile may be wrong for a machine. */

import type { LabelFlaws, Labels } from "../../model/labels/labels.ts";
import { matches } from "../../model/objects/group.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { type ReportedLabel, stillCounts, verdictOf } from "../../model/permits/permit.ts";
import { recognised } from "../../model/permits/recognised.ts";
import type { Doubt } from "../../model/refusals.ts";
import { isAlike, isSameOutcome } from "../../model/selection/contest.ts";
import type { SelectorIndex } from "../../model/selection/selector-index.ts";
import { namesMachine } from "../../model/selection/specificity.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootGroup, BootProfile, KnownDocuments } from "../core/known-documents.ts";
import type { BootLedger } from "../core/selected.ts";
import { askOf } from "./gate.ts";
import { type ChosenGroup, namespaceOf } from "./selection.ts";

interface Knowledge {
  readonly known: KnownDocuments;
  readonly selectors: SelectorIndex<BootGroup>;
  readonly ledger: BootLedger | undefined;
}

/** Returns the doubt about the objects of one machine; undefined if there is none. */
export function doubtOf(chosen: ChosenGroup, profile: BootProfile, knowledge: Knowledge): Doubt | undefined {
  const { known, selectors, ledger } = knowledge;
  const { group, machine, labels } = chosen;
  if (machine?.isRefused === true) return "refusedMachine";
  if (machine?.isLeaving === true) return "leavingMachine";
  if (waitsForMachine(chosen, profile, knowledge)) return "goneMachine";
  if (group.flaw !== undefined) return "flawedGroup";
  if (group.isOutdated || mayBeGone(chosen, selectors)) return "outdatedGroup";
  if (profile.isOutdated) return "outdatedProfile";
  if (labels.flaws !== undefined && mayMatter(labels.flaws, known, selectors)) return "identity";
  const doubt = ledger && ledgerDoubt(chosen, profile, known, ledger);
  if (doubt) return doubt;
  if (selectors.namesakesOf(group, labels).some((other) => !isSameOutcome(group, other))) return "namesakes";
  return undefined;
}

/**
 * True if a Machine of the request was removed or changed a moment ago. But a grant of the newest Machine, or of a
 * Group that names the machine, says what this machine may do now: false if such a grant opens the install or has
 * opened it.
 */
function waitsForMachine(
  { group, machine, asked }: ChosenGroup,
  profile: BootProfile,
  { known, ledger }: Knowledge,
): boolean {
  if (!known.machines.hasGone(asked, namespaceOf(group))) return false;
  const plan = profile.content.install;
  if (plan === undefined || ledger === undefined) return true;
  const named = namesMachine(group) ? group : { ...group, permits: undefined };
  const ask = askOf({ group: named, profile }, { labels: asked, machine }, "config", plan);
  if (verdictOf({ ...ask, purpose: "script" }, ledger).kind === "claim") return false;
  const begun = verdictOf(ask, ledger);
  return begun.kind !== "granted" || ask.grants.every(({ key }) => key !== begun.entry.grant?.key);
}

/** Returns the doubts about an Install that come from the ledger, except those of a permit. */
function ledgerDoubt(
  chosen: ChosenGroup,
  profile: BootProfile,
  known: KnownDocuments,
  ledger: BootLedger,
): Doubt | undefined {
  const { machine, asked, labels, sole } = chosen;
  const listed = machine?.spec.identities ?? [];
  const identities = identitiesOf(asked);
  const { isClear } = recognised({ identities, ...(machine && { listed }) }, ledger);
  const hasPlan = profile.content.install !== undefined;
  // With an install plan, the verdict on the permit covers this.
  if (!isClear && !hasPlan) return "otherMachine";
  const entries = ledger.entriesOf([...new Set([...listed, ...identities])]);
  const mayHaveReports = ledger.hasReports === true || known.takesReports;
  if (!hasPlan && ledger.mayMissReports === true && mayHaveReports) return "unknownReports";
  // What the request or the Machine says goes before any report.
  const isGiven = (name: string) => asked.has(name) || sole.machine?.labels.some(([own]) => own === name) === true;
  const differs = ([name, label]: readonly [string, ReportedLabel]) =>
    labels.get(name) !== label.value && !isGiven(name) && stillCounts(label, ledger.nowMs);
  return entries.some((entry) => Object.entries(entry.labels ?? {}).some(differs)) ? "otherReports" : undefined;
}

/**
 * True for a Group that nothing in the source defines any more, unless another Group that is alike and has the same
 * outcome selects the machine. A user who renames a Group can create the new one before deleting the old one.
 */
function mayBeGone({ group, labels }: ChosenGroup, selectors: SelectorIndex<BootGroup>): boolean {
  if (!group.isLeaving) return false;
  const stays = (other: BootGroup) => !other.isLeaving && isAlike(group, other) && isSameOutcome(group, other);
  const isCopy = (other: BootGroup) => stays(other) && matches(other, labels);
  return !selectors.listsFor(labels).some((groups) => groups.some(isCopy));
}

/**
 * Refuses a machine whose identity is not clear. A machine with an unreadable name never boots like a machine without
 * a name.
 * @throws {BootError} ambiguous or unreadable.
 */
export function assertIdentity(
  asked: Labels,
  group: BootGroup | undefined,
  known: Pick<KnownDocuments, "machines" | "hasTombstones">,
  selectors: Pick<SelectorIndex<BootGroup>, "speaksOf">,
): void {
  const { flaws } = asked;
  if (flaws === undefined) return;
  const { machines } = known;
  const subject = group && { group: group.id };
  if (flaws.repeated.size > 0) throw new BootError("ambiguous", subject);
  if (!namesMachine(group) && mayMatter(flaws, known, selectors)) throw new BootError("unreadable", subject);
  // The machine may have a Machine object that is held.
  const mayBeMachine = (label: string) => machines.speaksOf(label);
  if (machines.of(asked).length === 0 && [...flaws.unreadable].some(mayBeMachine))
    throw new BootError("unreadable", subject);
}

/** True if a Group selects by one of the unreadable labels, or a Group that was removed a moment ago did. */
function mayMatter(
  { unreadable }: LabelFlaws,
  known: Pick<KnownDocuments, "hasTombstones">,
  selectors: Pick<SelectorIndex<BootGroup>, "speaksOf">,
): boolean {
  return [...unreadable].some((label) => selectors.speaksOf(label) || known.hasTombstones(label));
}
