/**
 * Finds which machines a Group claims: those that its selector names by identity labels, or else all that it matches.
 * Pure.
 *
 * A Group with a list of 5,000 addresses gets a tombstone for each address. If each tombstone had the whole list, that
 * would be 25 million addresses. So each has only its own address, and the selector's other long lists are shortened.
 */

import { compareBytes } from "../../lib/order.ts";
import type { Expression } from "../../model/labels/expression.ts";
import { type GoneSelector, selectorPlace, tombstoneLabels } from "../../model/objects/documents.ts";
import type { GroupSpec } from "../../model/objects/group.ts";

/**
 * An identity label of a selector, and the values that the selector names for it. For a selector that names no machine,
 * the label is `selectorPlace` and the value is the selector as text.
 */
export interface IdentityClaim {
  readonly label: string;
  readonly values: ReadonlySet<string>;
  readonly labels: GroupSpec["selector"];
  /** The expression that lists the values; absent if `labels` has the value. */
  readonly list?: Expression;
  /** The other expressions of the selector. */
  readonly expressions: readonly Expression[];
  /** Equal if, and only if, the rest of the selector is equal. */
  readonly restText: string;
}

// Longer lists are shortened. Patterns in one expression have the same limit, so only `In` and `NotIn` can be longer.
const mostValues = 16;

/**
 * The claims of a Group: one for each identity label whose values the selector names. If it names none, one for the
 * whole selector.
 */
export function identityClaimsOf(spec: GroupSpec): readonly IdentityClaim[] {
  const { selector: labels, expressions = [] } = spec;
  const named = tombstoneLabels.flatMap((label) => identityClaimOf(label, spec) ?? []);
  if (named.length > 0) return named;
  const text = selectorJson(labels, expressions);
  return [{ label: selectorPlace, values: new Set([text]), labels, expressions, restText: "" }];
}

/** The part of the selector that concerns machines with this value. */
export function goneSelector({ label, labels, list, expressions }: IdentityClaim, value: string): GoneSelector {
  if (label === selectorPlace) return { labels, expressions };
  const others = expressions.map(shortened);
  return list === undefined
    ? { labels, expressions: others }
    : { labels, expressions: [{ ...list, values: [value] }, ...others] };
}

function identityClaimOf(label: string, { selector, expressions = [] }: GroupSpec): IdentityClaim | undefined {
  const equal = selector[label];
  const list =
    equal === undefined ? expressions.find((each) => each.key === label && each.operator === "In") : undefined;
  const values = equal === undefined ? list?.values : [equal];
  if (values === undefined) return undefined;
  const others = expressions.filter((expression) => expression !== list);
  const labels = Object.fromEntries(Object.entries(selector).filter(([name]) => name !== label));
  const restText = selectorJson(labels, others);
  return { label, values: new Set(values), labels: selector, ...(list && { list }), expressions: others, restText };
}

function selectorJson(labels: GroupSpec["selector"], expressions: readonly Expression[]): string {
  return JSON.stringify([Object.entries(labels).toSorted(([a], [b]) => compareBytes(a, b)), expressions]);
}

/**
 * Replaces a long `In` by `Exists`, and a long `NotIn` by one without values. So more machines wait, but a needless
 * minute of waiting does no harm.
 */
function shortened(expression: Expression): Expression {
  const { key, operator, values } = expression;
  if (values.length <= mostValues) return expression;
  return operator === "NotIn" ? { key, operator, values: [] } : { key, operator: "Exists", values: [] };
}
