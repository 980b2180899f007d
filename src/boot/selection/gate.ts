/**
 * The gate before Profiles with an `InstallPlan`. Selection asks it for every script and every config, whoever asks. It
 * never opens by itself: it needs an answer of the desk that fits the objects as they are when davit serves.
 */

import type { Labels } from "../../model/labels/labels.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import {
  type InstallPlan,
  isOfClaim,
  isOfRevision,
  isStillGranted,
  type LedgerEntry,
  type LedgerView,
  type NamedGrant,
  type PermitAsk,
  type PermitPurpose,
} from "../../model/permits/permit.ts";
import type { DeskAnswer } from "../../model/permits/permit-desk.ts";
import { permitRefusals } from "../../model/refusals.ts";
import { BootError } from "../core/boot-error.ts";
import { type BootGroup, type BootProfile, toBootGroup } from "../core/known-documents.ts";
import type { BootMachine } from "../core/known-machines.ts";
import type { Selected } from "../core/selected.ts";

/** A question and the desk's answer to it. */
export interface Pass {
  readonly ask: PermitAsk;
  readonly answer: DeskAnswer;
}

/** Returns the plan if a machine needs a permit for what it asks of a Profile; undefined if it needs none. */
export function planOf({ content, isInstall }: BootProfile, purpose: PermitPurpose): InstallPlan | undefined {
  // A script that boots the machine from its disk needs no permit. Its configs do: an installer may ask for them.
  return purpose === "config" || isInstall ? content.install : undefined;
}

/** What a machine is, for its question. */
interface AskingMachine {
  /** Of the request. */
  readonly labels: Labels;
  readonly machine: BootMachine | undefined;
}

/** Returns the question of a machine that gets a Profile with a plan. */
export function askOf(
  { group, profile }: Selected,
  { labels, machine }: AskingMachine,
  purpose: PermitPurpose,
  plan: InstallPlan,
): PermitAsk {
  const listed = machine?.document.spec.identities;
  return {
    purpose,
    identities: identitiesOf(labels),
    ...(listed && { listed }),
    grants: grantsOf(group, machine),
    plan,
    group: group.id,
    profile: profile.id,
    revision: profile.revision,
  };
}

function grantsOf({ id, permits }: BootGroup, machine: BootMachine | undefined): readonly NamedGrant[] {
  const grant = permits?.install;
  return [
    ...(machine?.grant === undefined ? [] : [machine.grant]),
    ...(grant === undefined ? [] : [{ key: `group/${id}`, grant }]),
  ];
}

/**
 * Checks that an answer opens the gate, or sends the machine to its disk, for the question as the objects ask it now.
 * @returns how the machine boots.
 * @throws {BootError} noPermit or late.
 */
export function openedBy(ask: PermitAsk, { ask: asked, answer }: Pass, ledger?: LedgerView): "install" | "disk" {
  const subject = { group: ask.group, profile: ask.profile };
  // The objects changed while the desk decided. The machine asks again, and the desk decides by the new ones.
  if (ask.group !== asked.group || ask.profile !== asked.profile || ask.purpose !== asked.purpose)
    throw new BootError("late", subject);
  switch (answer.kind) {
    case "granted":
      if (!isFor(ask, answer.entry, ledger)) throw new BootError("late", subject);
      return "install";
    case "disk":
      if (ask.purpose === "script") return "disk";
      throw new BootError("noPermit", { ...subject, problem: permitRefusals.over });
    case "refused":
      throw new BootError("noPermit", { ...subject, problem: permitRefusals[answer.why] });
    case "late":
      throw new BootError("late", subject);
  }
}

/**
 * True if a claim is for these objects. The writer of the ledger may have another revision of the Profile, or be an
 * earlier davit, which compares neither revision nor Group.
 */
function isFor(ask: PermitAsk, entry: LedgerEntry, ledger: LedgerView | undefined): boolean {
  if (ask.purpose === "script" && !isStillGranted(ask, entry, ledger?.id)) return false;
  return isOfRevision(ask, entry) && (ledger === undefined || isOfClaim(ask, entry, ledger));
}

/** Boots from the disk that stand in for Profiles. */
export class DiskBoots {
  readonly #profiles = new WeakMap<BootProfile, BootProfile>();
  /** Groups of their own, so that a Group's cached script stays that of the install. */
  readonly #groups = new WeakMap<BootGroup, BootGroup>();

  /** Returns how a machine boots whose permit is closed: by `InstallPlan.then`. */
  of({ group, profile }: Selected, plan: InstallPlan): Selected {
    const known = this.#profiles.get(profile);
    const ofProfile = known ?? asDisk(profile, plan);
    if (known === undefined) this.#profiles.set(profile, ofProfile);
    const ofGroup = this.#groups.get(group) ?? toBootGroup(onDisk(group), group.profileId, group);
    this.#groups.set(group, ofGroup);
    return { group: ofGroup, profile: ofProfile };
  }
}

/** The script of a boot from the disk has nothing secret, and a machine without HTTPS may have it. */
function onDisk(group: BootGroup): BootGroup {
  return { ...group, args: [], requiresTls: false };
}

function asDisk({ id, revision, content, isOutdated }: BootProfile, { then, disk }: InstallPlan): BootProfile {
  const { displayName, metadata } = content;
  const boot = { kind: "local", local: then, ...(disk && { disk }) } as const;
  return {
    id,
    revision,
    content: { displayName, ...(metadata && { metadata }), boot, templates: {} },
    hasFailed: false,
    isInstall: false,
    isOutdated,
  };
}
