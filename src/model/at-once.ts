/**
 * What counts of an object while it, or others, may be incomplete: only what makes machines wait. A Group that is held,
 * or that loses machines, is held; all else waits. So no half of a change gives a machine anything that the whole would
 * not, whatever it lacks. Pure.
 */

import type { GroupSpec } from "./group.ts";
import { implies, selectionOf } from "./implication.ts";
import type { SourceObject } from "./source.ts";

/**
 * The object to show meanwhile.
 * @param held what is shown now.
 * @param wanted the same object in its newest version; undefined for one that is gone.
 * @returns `held`, or it as a held Group, or a new Group that is held; undefined to show none.
 */
export function countingAtOnce(
  held: SourceObject | undefined,
  wanted: SourceObject | undefined,
): SourceObject | undefined {
  if (held === undefined) return wanted?.kind === "Group" && wanted.spec.hold ? wanted : undefined;
  if (held.kind !== "Group" || held.spec.hold) return held;
  return keepsAll(held, wanted) ? held : { ...held, spec: { ...held.spec, hold: true } };
}

/** True when the newest version takes every machine that the one before takes, and lets none wait. */
function keepsAll({ spec }: { readonly spec: GroupSpec }, wanted: SourceObject | undefined): boolean {
  if (wanted?.kind !== "Group" || wanted.spec.hold) return false;
  return implies(selectionOf(spec), selectionOf(wanted.spec));
}
