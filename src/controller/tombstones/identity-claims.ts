/**
 * Which machines would miss a Group: those of the identity labels in its selector, else all that the selector matches.
 * Pure.
 *
 * Of a list of 5,000 addresses there is a tombstone for each, so that none of them may have the whole list: it tells the
 * one value, and of other long lists no more than their label.
 */

import { compareBytes } from "../../lib/order.ts";
import { type GoneSelector, selectorPlace, tombstoneLabels } from "../../model/documents.ts";
import type { Expression } from "../../model/expression.ts";
import type { GroupSpec } from "../../model/group.ts";

/** A label of a selector and the values that it names; of a selector that names none, the selector itself. */
export interface IdentityClaim {
  readonly label: string;
  readonly values: ReadonlySet<string>;
  readonly labels: GroupSpec["selector"];
  /** The expression that lists the values; absent where a label of the selector has the one. */
  readonly list?: Expression;
  /** The other expressions of the selector. */
  readonly expressions: readonly Expression[];
  /** As text that is the same only where the rest of the selector is. */
  readonly restText: string;
}

// As many patterns as an expression may have: nothing but lists of values is longer.
const mostValues = 16;

/** The claims of a Group: one at most for each label that names machines, or one for the whole of its selector. */
export function identityClaimsOf(spec: GroupSpec): readonly IdentityClaim[] {
  const { selector: labels, expressions = [] } = spec;
  const named = tombstoneLabels.flatMap((label) => plotOf(label, spec) ?? []);
  if (named.length > 0) return named;
  const text = selectorJson(labels, expressions);
  return [{ label: selectorPlace, values: new Set([text]), labels, expressions, restText: "" }];
}

/** The selector as far as it was about machines with this value. */
export function goneSelector({ label, labels, list, expressions }: IdentityClaim, value: string): GoneSelector {
  if (label === selectorPlace) return { labels, expressions };
  const others = expressions.map(shortened);
  return list === undefined
    ? { labels, expressions: others }
    : { labels, expressions: [{ ...list, values: [value] }, ...others] };
}

function plotOf(label: string, { selector, expressions = [] }: GroupSpec): IdentityClaim | undefined {
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

/** A long list as what takes more machines and is about the same label: to wait in vain for a minute does no harm. */
function shortened(expression: Expression): Expression {
  const { key, operator, values } = expression;
  if (values.length <= mostValues) return expression;
  return operator === "NotIn" ? { key, operator, values: [] } : { key, operator: "Exists", values: [] };
}
