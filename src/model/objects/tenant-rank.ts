/**
 * The rank of a Group when Groups of different namespaces compete. For the admin's Group, every label and expression
 * counts. A tenant's Group gets 1 for each label with a value (by `=` or `In`), and 1 for all long enough patterns
 * together. `Exists`, `NotIn`, `DoesNotExist` and short patterns do not count: any machine can meet them, so any tenant
 * could use them to outrank the Groups of others. Pure.
 */

import { compareBytes } from "../../lib/order.ts";
import { type Expression, isBroadExpression, isPositive } from "../labels/expression.ts";

interface RankedSelection {
  readonly selector: Readonly<Record<string, string>>;
  readonly expressions: readonly Expression[];
}

/** The parts of a selector that count between namespaces. */
interface Traits {
  /** As one text: the labels that must have a value, and whether patterns count. It does not contain the values. */
  readonly keys: string;
  /** How many expressions count. */
  readonly expressions: number;
  /** 1 if the selector has patterns that count, else 0. */
  readonly patterns: number;
}

/** Returns the rank of a tenant's Group: its labels with a value, plus 1 if it has patterns that count. */
export function tenantRank(selection: RankedSelection): number {
  return Object.keys(selection.selector).length + listsOf(selection).length + (hasPattern(selection) ? 1 : 0);
}

/**
 * Returns the traits of a Group. Of the admin's Group, all expressions count. Of a tenant's Group, only those count
 * that `tenantRank` counts.
 */
export function traitsOf(group: RankedSelection & { readonly isTenant: boolean }): Traits {
  const { selector, expressions, isTenant } = group;
  const lists = listsOf(group);
  const patterns = hasPattern(group) ? 1 : 0;
  const values = [...Object.keys(selector), ...lists].toSorted(compareBytes);
  const counted = isTenant ? lists.length + patterns : expressions.length;
  return { keys: JSON.stringify([values, patterns]), expressions: counted, patterns };
}

/** Lists the labels whose values come only from a list (`In`). */
function listsOf({ selector, expressions }: RankedSelection): readonly string[] {
  const keys = expressions.flatMap(({ key, operator }) => (operator === "In" ? [key] : []));
  return [...new Set(keys)].filter((key) => !Object.hasOwn(selector, key));
}

/** True when the selector has a long enough pattern on a label without a value. */
function hasPattern({ selector, expressions }: RankedSelection): boolean {
  const hasValue = (label: string) =>
    Object.hasOwn(selector, label) || expressions.some(({ key, operator }) => key === label && operator === "In");
  return expressions.some((each) => isPositive(each) && !isBroadExpression(each) && !hasValue(each.key));
}
