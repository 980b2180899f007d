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
export interface SelectionRefusal extends BootErrorSubject {
  readonly reason: BootRefusal;
}

export type SelectionCheck = (seen: SeenAsker, world: World) => SelectionRefusal | undefined;
type Holds = (seen: SeenAsker, world: World) => boolean;

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

/** A check that the machine fails while `holds`. Its refusal names the Group. */
function ofGroup(reason: BootRefusal, holds: Holds): SelectionCheck {
  return (seen, world) => (holds(seen, world) ? { reason, group: seen.group?.id } : undefined);
}

/** As `ofGroup`. Its refusal also names the Profile. */
function ofProfile(reason: BootRefusal, holds: Holds): SelectionCheck {
  return (seen, world) => (holds(seen, world) ? withProfile(seen, reason) : undefined);
}

function withProfile({ group, profile }: SeenAsker, reason: BootRefusal): SelectionRefusal {
  return { reason, group: group?.id, profile: profile?.id ?? group?.profileId };
}

const tied = ofGroup("tied", ({ isTied }) => isTied);
const heldMachine = ofGroup("held", ({ sole }) => sole.isHeld);
const severalMachines = ofGroup("ambiguous", ({ sole }) => sole.isAmbiguous);

/** A machine with an unreadable name never boots like a machine without a name. */
const clearRequest: readonly SelectionCheck[] = [
  ofGroup("ambiguous", ({ asked: { flaws } }) => flaws !== undefined && flaws.repeated.size > 0),
  ofGroup("unreadable", ({ asked, group }, world) => !namesMachine(group) && mayMatter(asked, world)),
  // The machine may have a Machine object that is held.
  ofGroup("unreadable", ({ asked }, { known: { machines } }) => {
    if (asked.flaws === undefined || machines.of(asked).length > 0) return false;
    return [...asked.flaws.unreadable].some((label) => machines.speaksOf(label));
  }),
  // An unreadable object may be this machine's own Group.
  ofGroup("withheld", ({ group }, { known }) => isWithholding(known) && !namesMachine(group)),
];

/** @param asked see `KnownDocuments.waitsForRemovedGroup`. */
function removedGroup(asked: "boot" | "config" | "disk"): SelectionCheck {
  return ofGroup("bereft", ({ labels, group }, { known }) => known.waitsForRemovedGroup(labels, group, asked));
}

const servingGroup: readonly SelectionCheck[] = [
  ofGroup("noMatch", ({ group }) => group === undefined),
  ({ group }) => group?.barrier && { reason: group.barrier, group: group.id },
  ofGroup("held", ({ own }) => own.isHeld),
  ofGroup("ambiguous", ({ own }) => own.isAmbiguous),
  ofGroup("unapproved", ({ group, own }) => group?.permits?.approval !== undefined && own.machine?.isApproved !== true),
];

const missingProfile: SelectionCheck = (seen, { known }) =>
  seen.profile === undefined ? withProfile(seen, whyNoProfile(seen.group?.profileId ?? "", known)) : undefined;
const failedProfile = ofProfile("failed", ({ profile }) => profile?.hasFailed === true);

const certainInstall: readonly SelectionCheck[] = [
  // A Group that names the machine is not enough for an Install: an unreadable Group may outrank it.
  ofProfile("withheld", (_seen, { known }) => isWithholding(known)),
  // An installer without one of its configs may do something else than the objects say.
  (seen, { known }) => {
    const problem = known.secrets.problemOf(chosenOf(seen).profile);
    return problem === undefined ? undefined : { ...withProfile(seen, "undecryptable"), problem };
  },
  (seen, world) => {
    const chosen = chosenOf(seen);
    const doubt = doubtOf(chosen, world);
    if (doubt === undefined) return undefined;
    const details = { ageSeconds: world.freshness?.ageSeconds, flaw: chosen.group.flaw };
    const reason = doubt === "changing" ? "changing" : "doubtful";
    return { ...withProfile(seen, reason), problem: doubtText(doubt, details) };
  },
];

const named: readonly SelectionCheck[] = [tied, heldMachine, ...clearRequest];
const free: readonly SelectionCheck[] = [
  ...named,
  removedGroup("boot"),
  ...servingGroup,
  missingProfile,
  failedProfile,
];
const permitted: readonly SelectionCheck[] = [...named, ...servingGroup, missingProfile, failedProfile];

export const checks = {
  metadata: [tied, heldMachine, severalMachines, ...clearRequest, removedGroup("boot"), ...servingGroup],
  free,
  freeInstall: [...free, ...certainInstall],
  permittedInstall: [...permitted, removedGroup("boot"), ...certainInstall],
  permittedDisk: [...permitted, removedGroup("disk")],
  /** For a machine whose Machine is not clear: see `unclear` in `asker.ts`. */
  unclearDisk: [...named, ofGroup("ambiguous", ({ isDisk }) => !isDisk), removedGroup("disk")],
  /** For a config of an Install whose Profile now boots the machine's disk: an earlier installer may ask for it. */
  formerInstall: [
    ...[tied, heldMachine, severalMachines, ...clearRequest, ...servingGroup],
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
