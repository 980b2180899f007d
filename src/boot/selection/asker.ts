/** What davit knows of a machine at one request: everything that the checks of `checks.ts` read. */

import type { Labels } from "../../model/labels/labels.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { type InstallPlan, type PermitAsk, type PermitPurpose, verdictOf } from "../../model/permits/permit.ts";
import type { SelectorIndex } from "../../model/selection/selector-index.ts";
import type { BootGroup, BootProfile, KnownDocuments } from "../core/known-documents.ts";
import { mergedLabels, type SoleMachine } from "../core/known-machines.ts";
import type { BootLedger, Selected } from "../core/selected.ts";
import type { Freshness, Settling } from "./freshness.ts";
import { askOf, planOf } from "./gate.ts";

/** What selection reads besides the request: the documents, the ledger and the clock. */
export interface World {
  readonly known: KnownDocuments;
  readonly selectors: SelectorIndex<BootGroup>;
  readonly ledger: BootLedger | undefined;
  readonly settling: Pick<Settling, "isUnderWay">;
  readonly freshness: Pick<Freshness, "staleness" | "ageSeconds"> | undefined;
}

export interface SeenAsker {
  /** The labels of the request. */
  readonly asked: Labels;
  /** The labels by which Groups select: see `mergedLabels`. */
  readonly labels: Labels;
  /** The Machine that takes part in selection. */
  readonly sole: SoleMachine;
  /** The Group that wins; undefined if no Group matches. */
  readonly group: BootGroup | undefined;
  /** True if Groups tie for the machine. */
  readonly isTied: boolean;
  /** The Machine that counts for the Group: here those of its tenant count, too. */
  readonly own: SoleMachine;
  /** The Group's Profile; undefined if it does not exist. */
  readonly profile: BootProfile | undefined;
  /** Undefined if the machine needs no permit for what it asks. */
  readonly plan: InstallPlan | undefined;
  /** The question to the desk. Undefined without a plan. */
  readonly ask: PermitAsk | undefined;
  /** True if the machine boots its disk instead, by `InstallPlan.then`. */
  readonly isDisk: boolean;
}

/** A machine that has a Group and a Profile. */
export type ChosenAsker = SeenAsker & Selected;

/** Returns what davit knows of a machine. @param purpose undefined for metadata, which need no permit. */
export function see(asked: Labels, purpose: PermitPurpose | undefined, world: World): SeenAsker {
  const { known, ledger } = world;
  const sole = known.machines.soleOf(asked, undefined);
  const labels = mergedLabels(
    asked,
    sole.machine,
    ledger?.reportedLabels(asked, sole.machine?.document.spec.identities),
  );
  const { group, isTied } = winnerOf(labels, world);
  const isForTenant = group !== undefined && sole.hasOthers && !sole.isAmbiguous;
  const own = isForTenant ? known.machines.soleOf(asked, namespaceOf(group)) : sole;
  const profile = group && known.profiles.get(group.profileId);
  const plan = profile && purpose && !profile.hasFailed ? planOf(profile, purpose) : undefined;
  const seen = { asked, labels, sole, group, isTied, own, profile, plan, ask: undefined, isDisk: false };
  if (group === undefined || profile === undefined || plan === undefined || purpose === undefined) return seen;
  if (sole.isAmbiguous) return unclear(seen, { group, profile }, purpose, world);
  const ask = askOf({ group, profile }, { labels: asked, machine: own.machine }, purpose, plan);
  return { ...seen, ask, isDisk: ledger !== undefined && verdictOf(ask, ledger).kind === "disk" };
}

function winnerOf(labels: Labels, { selectors }: World): Pick<SeenAsker, "group" | "isTied"> {
  const first = selectors.find(labels);
  if (first === undefined || !selectors.hasRival(first, labels)) return { group: first, isTied: false };
  const { winner, rivals } = selectors.settle(labels);
  return { group: winner, isTied: rivals.length > 0 };
}

/**
 * While its Machine is ambiguous, an installed machine boots its disk: it may have a new board or network card, and
 * must not wait for ever. A barrier of the Group or a missing approval still makes it wait. Its question can claim
 * nothing.
 */
function unclear(
  seen: SeenAsker,
  { group, profile }: Selected,
  purpose: PermitPurpose,
  { known, ledger }: World,
): SeenAsker {
  const { asked, plan } = seen;
  const isKnown = ledger !== undefined && ledger.entriesOf(identitiesOf(asked)).length > 0;
  if (purpose !== "script" || plan === undefined || !isKnown || group.barrier !== undefined) return seen;
  const isApproved = () => known.machines.of(asked).some((machine) => machine.isApproved);
  if (group.permits?.approval !== undefined && !isApproved()) return seen;
  const ask = { ...askOf({ group, profile }, { labels: asked, machine: undefined }, purpose, plan), grants: [] };
  return { ...seen, ask, isDisk: verdictOf(ask, ledger).kind === "disk" };
}

export function namespaceOf({ id }: BootGroup): string {
  return id.slice(0, id.indexOf("/"));
}
