/**
 * What counts of an object while its file may still be half written: nothing but what makes machines wait. A Group that
 * is held, or that loses machines, is held; all else waits until the file is at rest. So no version that a writer never
 * meant gives a machine anything, whatever it lacks. Pure.
 */

import { toRequirement } from "../model/expression.ts";
import type { GroupSpec, Selection } from "../model/group.ts";
import { implies } from "../model/implication.ts";
import type { SourceObject } from "../model/source.ts";

/**
 * The object to show meanwhile.
 * @param held what is shown now.
 * @param wanted the same object in the file's newest version.
 * @returns `held`, or it as a held Group, or a new Group that is held; undefined to show none.
 */
export function countingAtOnce(held: SourceObject | undefined, wanted: SourceObject): SourceObject | undefined {
  if (wanted.kind !== "Group") return held;
  if (held === undefined) return wanted.spec.hold ? wanted : undefined;
  if (held.kind !== "Group" || held.spec.hold) return held;
  const waits = wanted.spec.hold || !implies(selectionOf(held.spec), selectionOf(wanted.spec));
  return waits ? { ...held, spec: { ...held.spec, hold: true } } : held;
}

function selectionOf({ selector, expressions = [] }: GroupSpec): Selection {
  return { selector, expressions: expressions.map(toRequirement) };
}
