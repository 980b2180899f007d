/**
 * Profiles whose newest version davit does not accept, so that it serves an older one. Groups that had the older
 * version keep it. A Group that came later waits: its author did not write it for that version.
 */

import type { GroupDocument } from "../../model/documents.ts";
import type { GroupSpec, GroupState, SelectorSpec } from "../../model/group.ts";
import { implies, selectionOf } from "../../model/implication.ts";
import { type ObjectName, objectKey } from "../../model/source.ts";
import type { Documents } from "../core/documents.ts";
import { ByReference } from "../core/names.ts";
import { lastAccepted } from "../reconcile/draft-group.ts";
import type { Outcome } from "../status/conditions.ts";

export class OlderProfiles {
  readonly #documents: Pick<Documents, "profile">;
  /** By the key of each Profile that this run planned. */
  readonly #isOlder = new Map<string, boolean>();
  readonly #late = new ByReference<ObjectName>();

  constructor(documents: Pick<Documents, "profile">) {
    this.#documents = documents;
  }

  /** @param outcome the Profile's result; `isOlder` undefined keeps the known value. */
  note(profile: ObjectName, { isOlder, status }: Pick<Outcome, "isOlder" | "status">): void {
    const key = objectKey(profile);
    // For a Profile that is gone the store gives the same answer, unless an older version is still there.
    const isForgotten = status === undefined && isOlder === false && !this.#isStoredOlder(profile);
    if (isForgotten) this.#isOlder.delete(key);
    else if (isOlder !== undefined) this.#isOlder.set(key, isOlder);
  }

  /** Why a Group waits; undefined if it had the served version, or if the served version is the newest. */
  lateness(id: ObjectName, document: GroupDocument, stored: GroupDocument | undefined): GroupState["oldProfile"] {
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: document.spec.profile };
    const had = hadBy(document, stored);
    // Otherwise a Group that is refused meanwhile would count as a Group that had the older version.
    const isLate = this.#isServedOlder(profile) && (had === undefined || takesOthers(had, document.spec));
    this.#late.note(profile, id, isLate ? id : undefined);
    return isLate ? { ...(had && { had }) } : undefined;
  }

  forget(profile: ObjectName, id: ObjectName): void {
    this.#late.note(profile, id, undefined);
  }

  /** The Groups that no longer wait. */
  released(profile: ObjectName): readonly ObjectName[] {
    return this.#isServedOlder(profile) ? [] : this.#late.of(profile);
  }

  #isServedOlder(profile: ObjectName): boolean {
    return this.#isOlder.get(objectKey(profile)) ?? this.#isStoredOlder(profile);
  }

  #isStoredOlder({ namespace, name }: ObjectName): boolean {
    return this.#documents.profile(namespace, name).document?.outdated === true;
  }
}

/**
 * True if the selector takes machines that the older selector does not take. The older version was not written for
 * these.
 */
export function takesOthers(before: SelectorSpec, spec: SelectorSpec): boolean {
  return !implies(selectionOf(spec), selectionOf(before));
}

/** The spec by which a Group had its Profile; undefined if it had none. */
export function hadSpec(stored: GroupDocument): GroupSpec | undefined {
  if (stored.oldProfile === undefined) return lastAccepted(stored)?.spec;
  return stored.oldProfile.had && stored.spec;
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
