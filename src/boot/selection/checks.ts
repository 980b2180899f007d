/**
 * The checks between a machine and its config, in lists. The first check that holds refuses the machine. The order of a
 * list is a matter of safety: a refusal with 404 sends a machine on to its next boot device, so every reason to wait
 * that may concern the machine comes before it. All checks are pure.
 */

import { assert } from "../../lib/errors.ts";
import { type BootRefusal, doubtText } from "../../model/refusals.ts";
import { namesMachine } from "../../model/selection/specificity.ts";
import type { BootErrorSubject } from "../core/boot-error.ts";
import type { KnownDocuments } from "../core/known-documents.ts";
import type { ChosenAsker, SeenAsker, World } from "./asker.ts";
import { doubtOf, mayMatter } from "./doubts.ts";

/** Why a machine gets no config, and its Group and Profile as far as they are known. */
interface SelectionRefusal extends BootErrorSubject {
  readonly reason: BootRefusal;
}

export type SelectionCheck = (seen: SeenAsker, world: World) => SelectionRefusal | undefined;

/** Returns the first refusal of a list; undefined if the machine passes all checks. */
export function firstRefusal(
  checks: readonly SelectionCheck[],
  seen: SeenAsker,
  world: World,
): SelectionRefusal | undefined {
  for (const check of checks) {
    const refusal = check(seen, world);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function ofGroup({ group }: SeenAsker, reason: BootRefusal): SelectionRefusal {
  return { reason, group: group?.id };
}

function ofProfile({ group, profile }: SeenAsker, reason: BootRefusal): SelectionRefusal {
  return { reason, group: group?.id, profile: profile?.id ?? group?.profileId };
}

const tied: SelectionCheck = (seen) => (seen.isTied ? ofGroup(seen, "tied") : undefined);
const heldMachine: SelectionCheck = (seen) => (seen.sole.isHeld ? ofGroup(seen, "held") : undefined);
const severalMachines: SelectionCheck = (seen) => (seen.sole.isAmbiguous ? ofGroup(seen, "ambiguous") : undefined);

/** A machine with an unreadable name never boots like a machine without a name. */
const flawedRequest: SelectionCheck = (seen, world) => {
  const { asked, group } = seen;
  const { machines } = world.known;
  if (asked.flaws === undefined) return undefined;
  const { repeated, unreadable } = asked.flaws;
  if (repeated.size > 0) return ofGroup(seen, "ambiguous");
  // The machine may have a Machine object that is held.
  const mayBeKnown = () => machines.of(asked).length === 0 && [...unreadable].some((label) => machines.speaksOf(label));
  const isUnreadable = (!namesMachine(group) && mayMatter(asked, world)) || mayBeKnown();
  return isUnreadable ? ofGroup(seen, "unreadable") : undefined;
};

/** An unreadable object may be this machine's own Group. */
const unreadSource: SelectionCheck = (seen, { known }) =>
  isWithholding(known) && !namesMachine(seen.group) ? ofGroup(seen, "withheld") : undefined;

/** @param asked see `KnownDocuments.waitsForRemovedGroup`. */
function removedGroup(asked: "boot" | "config" | "disk"): SelectionCheck {
  return (seen, { known }) =>
    known.waitsForRemovedGroup(seen.labels, seen.group, asked) ? ofGroup(seen, "bereft") : undefined;
}

const servingGroup: readonly SelectionCheck[] = [
  (seen) => (seen.group === undefined ? ofGroup(seen, "noMatch") : undefined),
  (seen) => seen.group?.barrier && ofGroup(seen, seen.group.barrier),
  (seen) => (seen.own.isHeld ? ofGroup(seen, "held") : undefined),
  (seen) => (seen.own.isAmbiguous ? ofGroup(seen, "ambiguous") : undefined),
  (seen) => {
    const needsApproval = seen.group?.permits?.approval !== undefined;
    return needsApproval && seen.own.machine?.isApproved !== true ? ofGroup(seen, "unapproved") : undefined;
  },
];

const missingProfile: SelectionCheck = (seen, { known }) =>
  seen.profile === undefined ? ofProfile(seen, whyNoProfile(seen.group?.profileId ?? "", known)) : undefined;
const failedProfile: SelectionCheck = (seen) => (seen.profile?.hasFailed ? ofProfile(seen, "failed") : undefined);

const certainInstall: readonly SelectionCheck[] = [
  // A Group that names the machine is not enough for an Install: an unreadable Group may outrank it.
  (seen, { known }) => (isWithholding(known) ? ofProfile(seen, "withheld") : undefined),
  // An installer without one of its configs may do something else than the objects say.
  (seen, { known }) => {
    const problem = known.secrets.problemOf(chosenOf(seen).profile);
    return problem === undefined ? undefined : { ...ofProfile(seen, "undecryptable"), problem };
  },
  (seen, world) => {
    const chosen = chosenOf(seen);
    const doubt = doubtOf(chosen, world);
    if (doubt === undefined) return undefined;
    const details = { ageSeconds: world.freshness?.ageSeconds, flaw: chosen.group.flaw };
    const reason = doubt === "changing" ? "changing" : "doubtful";
    return { ...ofProfile(seen, reason), problem: doubtText(doubt, details) };
  },
];

const named: readonly SelectionCheck[] = [tied, heldMachine, flawedRequest, unreadSource];
const free: readonly SelectionCheck[] = [
  ...named,
  removedGroup("boot"),
  ...servingGroup,
  missingProfile,
  failedProfile,
];
const permitted: readonly SelectionCheck[] = [...named, ...servingGroup, missingProfile, failedProfile];

export const checks = {
  metadata: [tied, heldMachine, severalMachines, flawedRequest, unreadSource, removedGroup("boot"), ...servingGroup],
  free,
  freeInstall: [...free, ...certainInstall],
  permittedInstall: [...permitted, removedGroup("boot"), ...certainInstall],
  permittedDisk: [...permitted, removedGroup("disk")],
  /** For a machine whose Machine is not clear: see `unclear` in `asker.ts`. */
  unclearDisk: [...named, (seen) => (seen.isDisk ? undefined : ofGroup(seen, "ambiguous")), removedGroup("disk")],
  /** For a config of an Install whose Profile now boots the machine's disk: an earlier installer may ask for it. */
  formerInstall: [
    ...[tied, heldMachine, severalMachines, flawedRequest, unreadSource, ...servingGroup],
    ...[removedGroup("config"), ...certainInstall],
  ],
} as const satisfies Readonly<Record<string, readonly SelectionCheck[]>>;

/** Returns the checks for a script or config. @param isSentToDisk by the desk. */
export function checksFor({ sole, ask, isDisk, profile }: SeenAsker, isSentToDisk = false): readonly SelectionCheck[] {
  if (sole.isAmbiguous) return checks.unclearDisk;
  if (ask !== undefined) return isDisk || isSentToDisk ? checks.permittedDisk : checks.permittedInstall;
  return profile?.isInstall === true ? checks.freeInstall : checks.free;
}

/**
 * Returns why a Group has no Profile. While an unreadable object may be the Profile, the reason is withheld. With a
 * 404, the machine would go on to its next boot device.
 */
export function whyNoProfile(profileId: string, known: KnownDocuments): BootRefusal {
  if (isWithholding(known)) return "withheld";
  return known.goneProfiles.has(profileId) ? "vanished" : "noProfile";
}

/** True while davit has not yet read the whole source. */
export function isWithholding({ synced }: KnownDocuments): boolean {
  return synced?.complete === false;
}

/** Returns a machine with its Group and Profile, after the checks of both. */
export function chosenOf(seen: SeenAsker): ChosenAsker {
  assert(isChosen(seen), "A machine without a Group or Profile is refused before");
  return seen;
}

function isChosen(seen: SeenAsker): seen is ChosenAsker {
  return seen.group !== undefined && seen.profile !== undefined;
}
