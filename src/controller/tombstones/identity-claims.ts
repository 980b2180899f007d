/**
 * Which machines would miss a Group: those that its selector names by identity labels, else all that it matches. Pure.
 *
 * A Group with a list of 5,000 addresses gets a tombstone for each address, so no tombstone may hold the whole list.
 * Each holds its one value. Other long lists are replaced by a condition on their label's presence.
 */

import { compareBytes } from "../../lib/order.ts";
import { type GoneSelector, selectorPlace, tombstoneLabels } from "../../model/documents.ts";
import type { Expression } from "../../model/expression.ts";
import type { GroupSpec } from "../../model/group.ts";

/** A label of a selector and the values that it names; without such a label, the selector itself. */
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

// The same limit as for patterns in an expression: only lists of values are longer.
const mostValues = 16;

/** The claims of a Group: at most one for each label that names machines, or one for its whole selector. */
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

/** Widens a long list to the label's presence: more machines wait, but a needless minute of waiting does no harm. */
function shortened(expression: Expression): Expression {
  const { key, operator, values } = expression;
  if (values.length <= mostValues) return expression;
  return operator === "NotIn" ? { key, operator, values: [] } : { key, operator: "Exists", values: [] };
}
