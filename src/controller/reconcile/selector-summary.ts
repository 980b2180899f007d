/** A selector as its user reads it in a status: long lists by their first values and how many there are. Pure. */

import type { Expression } from "../../model/expression.ts";
import { type Selection, selectorText } from "../../model/group.ts";

const maxShownValues = 4;
// What the CRD allows a status, and then some for what is written behind it.
const maxLength = 8_000;

/** The selector as text, at most as long as a status may have it; empty for that of a catch-all. */
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
