/**
 * Decides which changes take effect immediately. Other objects may have changed together with an object, and davit may
 * not know them yet. So only changes that make machines wait take effect immediately; all others are delayed. A Group
 * that is newly held, loses machines or is removed is held immediately. So an incomplete change never gives a machine
 * anything that the complete change would not. Pure.
 */

import type { GroupSpec } from "./group.ts";
import { implies, selectionOf } from "./implication.ts";
import type { SourceObject } from "./source.ts";

/**
 * Returns the object to use until the change may take effect.
 * @param held the object in use.
 * @param wanted the same object in its newest version; undefined after a removal.
 * @returns `held`, or `held` with `spec.hold` set, or a new Group that is held; undefined for no object.
 */
export function countingAtOnce(
  held: SourceObject | undefined,
  wanted: SourceObject | undefined,
): SourceObject | undefined {
  if (held === undefined) return wanted?.kind === "Group" && wanted.spec.hold ? wanted : undefined;
  if (held.kind !== "Group" || held.spec.hold) return held;
  return keepsAll(held, wanted) ? held : { ...held, spec: { ...held.spec, hold: true } };
}

/** True when the newest version selects every machine of the previous one, and does not hold them. */
function keepsAll({ spec }: { readonly spec: GroupSpec }, wanted: SourceObject | undefined): boolean {
  if (wanted?.kind !== "Group" || wanted.spec.hold) return false;
  return implies(selectionOf(spec), selectionOf(wanted.spec));
}
