/** Finds the outcome of a Profile, whether it is accepted, refused, only partly read, or gone. */

import {
  type ObjectName,
  objectKey,
  type ProfileObject,
  type Refusal,
  referencesOf,
  type SourceView,
} from "../../model/objects/source.ts";
import type { FaultGuard } from "../core/faults.ts";
import type { StoredProfile } from "../core/stored-documents.ts";
import { asRefused, type Outcome } from "../status/conditions.ts";
import {
  abandonProfile,
  awaitProfile,
  doubtProfile,
  failProfile,
  reconcileProfile,
  refuseProfile,
  removeProfile,
  syncOfKept,
} from "./reconcile-profile.ts";
import type { ProfileWorld } from "./resolve-profile.ts";

interface Around {
  readonly view: Pick<SourceView, "get" | "refusalOf" | "pendingOf" | "isGone" | "isLeaving">;
  readonly world: ProfileWorld;
  readonly guard: FaultGuard;
}

/**
 * Plans a Profile. If the Profile is not in view, but may exist, its stored content stays, but installs no machine. For
 * a pending Profile, see `awaitProfile`.
 */
export function profileOutcome(id: ObjectName, stored: StoredProfile, around: Around): Outcome {
  const { view, world, guard } = around;
  const newest = view.get("Profile", id.namespace, id.name) ?? view.refusalOf(id);
  if (newest === undefined) {
    if (view.isGone(id)) return removeProfile(id.namespace, id.name, stored);
    const pending = view.pendingOf?.(id);
    return pending === undefined ? doubtProfile(id, stored) : awaitProfile(pending, stored, world);
  }
  return guard(
    id,
    () => outcomeOf(newest, stored, around),
    () => failProfile(newest, stored, world),
    () => abandonProfile(newest, stored),
  );
}

function outcomeOf(newest: ProfileObject | Refusal, stored: StoredProfile, { view, world }: Around): Outcome {
  if (!("spec" in newest)) return refuseProfile(newest, stored, world);
  const refusal = view.refusalOf(newest);
  const isOutdated = refusal !== undefined || isLeaving(newest, view);
  const outcome = reconcileProfile(newest, stored, world, isOutdated ? { caution: refusal?.caution } : undefined);
  const { status, content } = outcome;
  if (refusal === undefined || status === undefined) return outcome;
  return { ...outcome, status: asRefused(status, refusal, syncOfKept(content)), isOlder: true };
}

/**
 * The state of a Profile, for its Groups.
 * - `there`: it is in view or pending, or the store still serves a version of it.
 * - `refused`: its newest version is refused, and the store serves none.
 * - `missing`: neither.
 */
export function profileState(
  view: Around["view"],
  { namespace, name }: { readonly namespace: string; readonly name: string },
  stored: StoredProfile,
): "there" | "refused" | "missing" {
  const id = { kind: "Profile", namespace, name } as const;
  if (view.get("Profile", namespace, name) ?? view.pendingOf?.(id)) return "there";
  const isServed = stored.document !== undefined && stored.document.failed !== true;
  if (isServed && !view.isGone(id)) return "there";
  return view.refusalOf(id) === undefined ? "missing" : "refused";
}

/**
 * Remembers which Profiles are refused. Groups report whether their Profile is refused, so davit plans them again when
 * that changes.
 */
export class RefusedProfiles {
  readonly #keys = new Set<string>();

  /** True when the newest version of a Profile became refused, or stopped being refused, since the last call. */
  takeChange(profile: ObjectName, view: Pick<SourceView, "refusalOf">): boolean {
    const key = objectKey(profile);
    const wasRefused = this.#keys.delete(key);
    const isRefused = view.refusalOf(profile) !== undefined;
    if (isRefused) this.#keys.add(key);
    return isRefused !== wasRefused;
  }
}

/** True if the Profile, or an object that it names, is in view only for now: nothing defines it any more. */
function isLeaving(profile: ProfileObject, view: Around["view"]): boolean {
  return view.isLeaving !== undefined && [profile, ...referencesOf(profile)].some((name) => view.isLeaving?.(name));
}
