/** Makes up labels that a selector matches, where that is easy. Pure. */

import { type Expression, isPositive } from "../../model/expression.ts";
import type { Selection } from "../../model/group.ts";
import type { Labels } from "../../model/labels.ts";

/**
 * Values of identity labels for a sample machine, always the same. The MAC address is from the block for documentation
 * (RFC 7042).
 */
export const samples: ReadonlyMap<string, string> = new Map([
  ["uuid", "01234567-89ab-4cde-8f01-23456789abcd"],
  ["mac", "00:00:5e:00:53:01"],
  ["hostname", "sample"],
  ["serial", "SAMPLE"],
]);

/**
 * Returns the labels that the selector asks for, and no others. A machine with these labels nearly always matches. It
 * may not match if a label has several expressions and no candidate meets them all.
 */
export function sampleLabels({ selector, expressions }: Selection): Labels {
  const labels = new Map(Object.entries(selector));
  for (const expression of expressions) {
    const { key } = expression;
    if (!isPositive(expression) || labels.has(key)) continue;
    const wishes = expressions.filter((other) => other.key === key);
    const value = candidates(wishes).find((each) => wishes.every(({ accepts }) => accepts(each)));
    if (value !== undefined) labels.set(key, value);
  }
  return labels;
}

/** Values to try for a label: the sample value, and one value for each value of the expressions. */
function candidates(wishes: readonly Expression[]): readonly string[] {
  const [{ key } = { key: "" }] = wishes;
  return [
    samples.get(key) ?? "sample",
    ...wishes.flatMap((wish) => wish.values.map((value) => instanceOf(wish, value))),
  ];
}

/** A text that matches a pattern of an expression; for other operators, the value itself. */
function instanceOf({ key, operator }: Expression, value: string): string {
  if (operator !== "Prefix" && operator !== "Glob") return value;
  const text = operator === "Glob" ? value.replaceAll("*", "").replaceAll("?", "0") : value;
  // A MAC address or UUID is only valid as a whole.
  return key === "mac" || key === "uuid" ? text + (samples.get(key) ?? "").slice(text.length) : text;
}
