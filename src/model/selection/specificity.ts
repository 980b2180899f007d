/**
 * How specific a selector is on a single label. davit uses this to compare Groups with a removed Group, and to find the
 * Groups that name machines.
 */

import type { Expression, Operator } from "../labels/expression.ts";
import { identityLabels } from "../labels/labels.ts";
import type { Selector } from "../objects/group.ts";

interface NamedLabels {
  readonly selector: Selector;
  readonly expressions?: readonly Pick<Expression, "key" | "operator">[];
}

/** From weak to strong: an exclusion, presence, a pattern, a value. */
const strengths: Readonly<Record<Operator, number>> = {
  NotIn: 1,
  DoesNotExist: 1,
  Exists: 2,
  Prefix: 3,
  Glob: 3,
  In: 4,
};

/** True for a selector that names the values of this label. */
export function namesValueOf(selector: NamedLabels, label: string): boolean {
  return strengthOn(selector, label) === strengths.In;
}

/** True for a Group that names its machines by an identity label. */
export function namesMachine(group: NamedLabels | undefined): boolean {
  return group !== undefined && identityLabels.some((label) => namesValueOf(group, label));
}

/** True when a selector is at least as specific as the other one on each label that the other one uses. */
export function isAsSpecific(selector: NamedLabels, other: NamedLabels): boolean {
  const labels = [...Object.keys(other.selector), ...(other.expressions ?? []).map(({ key }) => key)];
  return labels.every((label) => strengthOn(selector, label) >= strengthOn(other, label));
}

/** Returns how specific a selector is on a label; zero if it does not use the label. */
function strengthOn({ selector, expressions = [] }: NamedLabels, label: string): number {
  if (Object.hasOwn(selector, label)) return strengths.In;
  return expressions.reduce(
    (most, { key, operator }) => (key === label ? Math.max(most, strengths[operator]) : most),
    0,
  );
}
