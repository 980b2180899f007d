/**
 * Handles Profiles that davit serves in an older version, because it does not accept the newest one. Groups that had
 * the older version keep it. A Group that was added later waits, because its author did not write it for that version.
 */

import type { GroupDocument } from "../../model/objects/documents.ts";
import type { GroupSpec, GroupState, SelectorSpec } from "../../model/objects/group.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import { implies, selectionOf } from "../../model/selection/implication.ts";
import type { Documents } from "../core/documents.ts";
import { ByReference } from "../core/names.ts";
import { lastAccepted } from "../reconcile/draft-group.ts";
import type { Outcome } from "../status/conditions.ts";

export class OlderProfiles {
  readonly #documents: Pick<Documents, "profile">;
  /**
   * Whether davit serves an older version of a Profile: by key, for the Profiles that davit planned since its start.
   */
  readonly #isOlder = new Map<string, boolean>();
  /** Groups that wait for a newer version of their Profile. */
  readonly #late = new ByReference<ObjectName>();

  constructor(documents: Pick<Documents, "profile">) {
    this.#documents = documents;
  }

  /**
   * Records whether davit serves an older version. @param outcome of the Profile; the known value stays if `isOlder` is
   * undefined.
   */
  note(profile: ObjectName, { isOlder, status }: Pick<Outcome, "isOlder" | "status">): void {
    const key = objectKey(profile);
    // A Profile that is gone needs no entry, unless the store still has an older version of it.
    const isForgotten = status === undefined && isOlder === false && !this.#isStoredOlder(profile);
    if (isForgotten) this.#isOlder.delete(key);
    else if (isOlder !== undefined) this.#isOlder.set(key, isOlder);
  }

  /**
   * The mark of a Group that waits for a newer version of its Profile. Undefined if the Group had the served version,
   * or if the served version is the newest.
   */
  lateness(id: ObjectName, document: GroupDocument, stored: GroupDocument | undefined): GroupState["oldProfile"] {
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: document.spec.profile };
    const had = hadBy(document, stored);
    // This also marks a refused version. Without the mark, the Group would later count as a Group that had the older
    // version.
    const isLate = this.#isServedOlder(profile) && (had === undefined || takesOthers(had, document.spec));
    this.#late.note(profile, id, isLate ? id : undefined);
    return isLate ? { ...(had && { had }) } : undefined;
  }

  forget(profile: ObjectName, id: ObjectName): void {
    this.#late.note(profile, id, undefined);
  }

  /** The Groups that need not wait any more, because davit serves the newest version. */
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
 * True if the newer selector takes machines that the older one does not. No older version, of the Profile or of the
 * Group's metadata, was written for those machines.
 */
export function takesOthers(before: SelectorSpec, spec: SelectorSpec): boolean {
  return !implies(selectionOf(spec), selectionOf(before));
}

/**
 * The stored spec of a Group that has or had its Profile; undefined if it never had it. A Group that waits for its
 * Profile has the spec that waits. Its earlier selector is `oldProfile.had`.
 */
export function specIfHad(stored: GroupDocument): GroupSpec | undefined {
  if (stored.oldProfile === undefined) return lastAccepted(stored)?.spec;
  return stored.oldProfile.had && stored.spec;
}

/** The selector with which a Group had this Profile; undefined if it never had it. */
function hadBy({ uid, spec }: GroupDocument, stored: GroupDocument | undefined): SelectorSpec | undefined {
  if (stored === undefined || stored.uid !== uid || stored.spec.profile !== spec.profile) return undefined;
  if (stored.oldProfile !== undefined) return stored.oldProfile.had;
  const before = lastAccepted(stored)?.spec;
  if (before === undefined) return undefined;
  const { selector, expressions } = before;
  return { selector, ...(expressions && { expressions }) };
}
