/**
 * Which machines would miss a Group: the values of identity labels that its selector names. Pure.
 *
 * Of a list of 5,000 addresses there is a tombstone for each, so that none of them may have the whole list: it tells the
 * one value, and of other long lists no more than their label.
 */

import { compareBytes } from "../lib/order.ts";
import { type GoneSelector, tombstoneLabels } from "../model/documents.ts";
import type { Expression } from "../model/expression.ts";
import type { GroupSpec } from "../model/group.ts";

/** A label of a selector and the values that it names. */
export interface Plot {
  readonly label: string;
  readonly values: ReadonlySet<string>;
  readonly labels: GroupSpec["selector"];
  /** All of the selector but what names these values. */
  readonly expressions: readonly Expression[];
  /** As text that is the same only where the rest of the selector is. */
  readonly restText: string;
}

// As many patterns as an expression may have: nothing but lists of values is longer.
const mostValues = 16;

/** The plots of a Group: one at most for each label that names machines. */
export function plotsOf({ selector, expressions = [] }: GroupSpec): readonly Plot[] {
  return tombstoneLabels.flatMap((label): Plot | [] => {
    const equal = selector[label];
    const list = expressions.find(({ key, operator }) => key === label && operator === "In");
    const values = equal === undefined ? list?.values : [equal];
    if (values === undefined) return [];
    const others = equal === undefined ? expressions.filter((expression) => expression !== list) : expressions;
    const labels = Object.entries(selector).filter(([name]) => name !== label);
    const restText = JSON.stringify([labels.toSorted(([a], [b]) => compareBytes(a, b)), others]);
    return { label, values: new Set(values), labels: selector, expressions: others, restText };
  });
}

/** The selector as far as it was about machines with this value. */
export function goneSelector({ label, labels, expressions }: Plot, value: string): GoneSelector {
  return { labels: { ...labels, [label]: value }, expressions: expressions.map(shortened) };
}

/** A long list as what takes more machines and is about the same label: to wait in vain for a minute does no harm. */
function shortened(expression: Expression): Expression {
  const { key, operator, values } = expression;
  if (values.length <= mostValues) return expression;
  return operator === "NotIn" ? { key, operator, values: [] } : { key, operator: "Exists", values: [] };
}
