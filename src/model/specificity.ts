/** How much a selector says of a label, whoever asks: by it Groups are compared with one that is gone. */

import { compareBytes } from "../lib/order.ts";
import type { Operator } from "./expression.ts";
import { compareRanks, type Selection } from "./group.ts";
import { identityLabels } from "./labels.ts";

/** From what a label is not, over that it is there and what it looks like, to its value. */
const strengths: Readonly<Record<Operator, number>> = {
  NotIn: 1,
  DoesNotExist: 1,
  Exists: 2,
  Prefix: 3,
  Glob: 3,
  In: 4,
};

/** True for a selector that names the values of this label. */
export function namesValueOf(selector: Selection, label: string): boolean {
  return strengthOn(selector, label) === strengths.In;
}

/** True for a Group that names its machines by an identity label. */
export function namesMachine(group: Selection | undefined): boolean {
  return group !== undefined && identityLabels.some((label) => namesValueOf(group, label));
}

/** True for a selector that says of each label of another one as much as that does, or more. */
export function isAsSpecific(selector: Selection, other: Selection): boolean {
  const labels = [...Object.keys(other.selector), ...other.expressions.map(({ key }) => key)];
  return labels.every((label) => strengthOn(selector, label) >= strengthOn(other, label));
}

/**
 * True when a Group wins over another one wherever both select: by priority, by how much they ask for, or by their
 * selectors' texts. Neither does of two that ask the same things of the same labels: those tie.
 */
export function outranks(group: Ranked, other: Ranked): boolean {
  return compareRanks(group, other) < 0 && !ties(group, other);
}

type Ranked = Parameters<typeof compareRanks>[0] & Selection;

function ties(group: Ranked, other: Ranked): boolean {
  if (group.priority !== other.priority || group.requirementCount !== other.requirementCount) return false;
  return formOf(group) === formOf(other);
}

/** The labels that a selector asks for, and how. */
function formOf({ selector, expressions }: Selection): string {
  const asked = expressions.map(({ key, operator }) => [key, operator]);
  return JSON.stringify([Object.keys(selector).toSorted(compareBytes), asked.map(String).toSorted(compareBytes)]);
}

/** Zero for a label that a selector does not speak of. */
function strengthOn({ selector, expressions }: Selection, label: string): number {
  if (Object.hasOwn(selector, label)) return strengths.In;
  return expressions.reduce(
    (most, { key, operator }) => (key === label ? Math.max(most, strengths[operator]) : most),
    0,
  );
}
