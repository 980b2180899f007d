/**
 * How much a Group says of its machines, as far as that counts between namespaces. Outside the admin namespace only that
 * counts that distinguishes machines: a value of a label, by `=` or `In`, once for each label, and one for all patterns
 * together that fix enough characters. What any machine can meet (`Exists`, `NotIn`, `DoesNotExist`, a short pattern) does
 * not: by such expressions anybody could come before the Groups of others. Pure.
 */

import { compareBytes } from "../lib/order.ts";
import { type Expression, isBroadExpression, isPositive } from "./expression.ts";

interface RankedSelection {
  readonly selector: Readonly<Record<string, string>>;
  readonly expressions: readonly Expression[];
}

/** What counts of a selector. */
export interface Traits {
  /** The labels that need a value, and whether it has patterns. Selectors that ask for the same have equal keys. */
  readonly keys: string;
  /** How many expressions count. */
  readonly expressions: number;
  /** How many of those name no values. */
  readonly patterns: number;
}

/** How many labels, lists and patterns count of a tenant's Group. */
export function tenantRank(selection: RankedSelection): number {
  return Object.keys(selection.selector).length + listsOf(selection).length + (hasPattern(selection) ? 1 : 0);
}

/** Everything counts of the admin's Group; `tenantRank` decides for others. */
export function traitsOf(group: RankedSelection & { readonly isTenant: boolean }): Traits {
  const { selector, expressions, isTenant } = group;
  const lists = listsOf(group);
  const patterns = hasPattern(group) ? 1 : 0;
  const values = [...Object.keys(selector), ...lists].toSorted(compareBytes);
  const counted = isTenant ? lists.length + patterns : expressions.length;
  return { keys: JSON.stringify([values, patterns]), expressions: counted, patterns };
}

/** Labels whose values only a list names. */
function listsOf({ selector, expressions }: RankedSelection): readonly string[] {
  const keys = expressions.flatMap(({ key, operator }) => (operator === "In" ? [key] : []));
  return [...new Set(keys)].filter((key) => !Object.hasOwn(selector, key));
}

function hasPattern({ selector, expressions }: RankedSelection): boolean {
  const hasValue = (label: string) =>
    Object.hasOwn(selector, label) || expressions.some(({ key, operator }) => key === label && operator === "In");
  return expressions.some((each) => isPositive(each) && !isBroadExpression(each) && !hasValue(each.key));
}
