/** Shows a selector in a status, for its user: a long list by its first values and its length. Pure. */

import type { Expression } from "../../model/expression.ts";
import { type Selection, selectorText } from "../../model/group.ts";

const maxShownValues = 4;
// The CRD's limit on a status, less some room for the text behind it.
const maxLength = 8_000;

/** The selector as text, cut to the longest that a status may hold; empty for a catch-all's selector. */
export function selectorSummary({ selector, expressions }: Selection): string {
  const text = selectorText(selector, expressions.map(summary));
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}...`;
}

function summary(expression: Expression): Expression {
  const { values } = expression;
  if (values.length <= maxShownValues) return expression;
  const others = `${values.length - maxShownValues} more`;
  return { ...expression, values: [...values.slice(0, maxShownValues), others] };
}
