/**
 * Profiles of which davit serves an older version, since it does not take over the newest one. That version stays for the
 * Groups that had it. A Group that came later never had it, by no version of its Profile that was valid then: it waits.
 */

import type { GroupDocument } from "../model/documents.ts";
import type { GroupSpec, GroupState, SelectorSpec } from "../model/group.ts";
import { implies, selectionOf } from "../model/implication.ts";
import { type ObjectName, objectKey } from "../model/source.ts";
import { ByProfile } from "./by-profile.ts";
import type { Documents } from "./documents.ts";
import { lastAccepted } from "./draft-group.ts";

export class OlderProfiles {
  readonly #documents: Pick<Documents, "profile">;
  /** By the key of a Profile that was planned in this run. */
  readonly #isOlder = new Map<string, boolean>();
  readonly #late = new ByProfile<ObjectName>();

  constructor(documents: Pick<Documents, "profile">) {
    this.#documents = documents;
  }

  /** @param isOlder undefined where it is not known anew. */
  note(profile: ObjectName, isOlder: boolean | undefined): void {
    if (isOlder !== undefined) this.#isOlder.set(objectKey(profile), isOlder);
  }

  /** Why a Group waits; undefined for one that had the version that is served, or where that is the newest. */
  lateness(id: ObjectName, document: GroupDocument, stored: GroupDocument | undefined): GroupState["oldProfile"] {
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: document.spec.profile };
    const had = hadBy(document, stored);
    // One that is refused meanwhile must not come out as one that had it.
    const isLate = this.#isServedOlder(profile) && (had === undefined || takesOthers(had, document.spec));
    this.#late.note(profile, id, isLate ? id : undefined);
    return isLate ? { ...(had && { had }) } : undefined;
  }

  forget(profile: ObjectName, id: ObjectName): void {
    this.#late.note(profile, id, undefined);
  }

  /** The Groups that need not wait any more. */
  released(profile: ObjectName): readonly ObjectName[] {
    return this.#isServedOlder(profile) ? [] : this.#late.of(profile);
  }

  #isServedOlder(profile: ObjectName): boolean {
    const { namespace, name } = profile;
    const known = this.#isOlder.get(objectKey(profile));
    return known ?? this.#documents.profile(namespace, name).document?.outdated === true;
  }
}

/** True for a selector that takes machines that the older one does not take: nobody meant what that one has for them. */
export function takesOthers(before: SelectorSpec, spec: SelectorSpec): boolean {
  return !implies(selectionOf(spec), selectionOf(before));
}

/** What a Group had of its Profile was made with this; undefined where it had nothing. */
export function hadSpec(stored: GroupDocument): GroupSpec | undefined {
  return stored.oldProfile?.had === undefined ? lastAccepted(stored)?.spec : stored.spec;
}

/** The selector of the machines that got this Profile from this Group. */
function hadBy({ uid, spec }: GroupDocument, stored: GroupDocument | undefined): SelectorSpec | undefined {
  if (stored === undefined || stored.uid !== uid || stored.spec.profile !== spec.profile) return undefined;
  if (stored.oldProfile !== undefined) return stored.oldProfile.had;
  const before = lastAccepted(stored)?.spec;
  if (before === undefined) return undefined;
  const { selector, expressions } = before;
  return { selector, ...(expressions && { expressions }) };
}
