/**
 * Decides what an object changes while it, or others, may be incomplete: only changes that make machines wait. A Group
 * that is held, or that loses machines, is held; everything else waits. So half of a change never gives a machine
 * anything that the whole would not. Pure.
 */

import type { GroupSpec } from "./group.ts";
import { implies, selectionOf } from "./implication.ts";
import type { SourceObject } from "./source.ts";

/**
 * The object to use meanwhile.
 * @param held the object in use.
 * @param wanted the same object in its newest version; undefined after a removal.
 * @returns `held`, or it as a held Group, or a new held Group; undefined for none.
 */
export function countingAtOnce(
  held: SourceObject | undefined,
  wanted: SourceObject | undefined,
): SourceObject | undefined {
  if (held === undefined) return wanted?.kind === "Group" && wanted.spec.hold ? wanted : undefined;
  if (held.kind !== "Group" || held.spec.hold) return held;
  return keepsAll(held, wanted) ? held : { ...held, spec: { ...held.spec, hold: true } };
}

/** True when the newest version takes every machine of the previous one, and makes none wait. */
function keepsAll({ spec }: { readonly spec: GroupSpec }, wanted: SourceObject | undefined): boolean {
  if (wanted?.kind !== "Group" || wanted.spec.hold) return false;
  return implies(selectionOf(spec), selectionOf(wanted.spec));
}
