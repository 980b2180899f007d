/**
 * Decides which changes of an object take effect while it, or others, may be incomplete: only those that make machines
 * wait. A Group that is newly held, or that loses machines, is held at once; all other changes are delayed. So half
 * of a change never gives a machine anything that the whole change would not. Pure.
 */

import type { GroupSpec } from "./group.ts";
import { implies, selectionOf } from "./implication.ts";
import type { SourceObject } from "./source.ts";

/**
 * The object to use meanwhile.
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

/** True when the newest version takes every machine of the previous one, and makes none wait. */
function keepsAll({ spec }: { readonly spec: GroupSpec }, wanted: SourceObject | undefined): boolean {
  if (wanted?.kind !== "Group" || wanted.spec.hold) return false;
  return implies(selectionOf(spec), selectionOf(wanted.spec));
}
