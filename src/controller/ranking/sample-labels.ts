/** Makes up labels of a machine that a selector matches. All functions here are pure. */

import { type Expression, isPositive } from "../../model/expression.ts";
import type { Selection } from "../../model/group.ts";
import type { Labels } from "../../model/labels.ts";

/**
 * The identity labels of a sample machine. They are the same for every sample. The MAC address is from the block that
 * RFC 7042 reserves for documentation.
 */
export const samples: ReadonlyMap<string, string> = new Map([
  ["uuid", "01234567-89ab-4cde-8f01-23456789abcd"],
  ["mac", "00:00:5e:00:53:01"],
  ["hostname", "sample"],
  ["serial", "SAMPLE"],
]);

/**
 * Returns values for the labels that the selector asks for, and no other labels. A machine with these labels nearly
 * always matches the selector. If several expressions name one label, `candidates` may list no value that meets all of
 * them. The result then lacks this label, and the machine does not match.
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

/** Returns values to try for a label: the sample value, and one made from each value in the label's expressions. */
function candidates(wishes: readonly Expression[]): readonly string[] {
  const [{ key } = { key: "" }] = wishes;
  return [
    samples.get(key) ?? "sample",
    ...wishes.flatMap((wish) => wish.values.map((value) => instanceOf(wish, value))),
  ];
}

/**
 * Makes a label's value from one value of an expression. From the pattern of a `Prefix` or `Glob`, it makes a text that
 * should match the pattern; `sampleLabels` checks this. It returns a value of `In` or `NotIn` unchanged.
 */
function instanceOf({ key, operator }: Expression, value: string): string {
  if (operator !== "Prefix" && operator !== "Glob") return value;
  const text = operator === "Glob" ? value.replaceAll("*", "").replaceAll("?", "0") : value;
  // A machine's MAC address or UUID is always complete, so the end comes from the sample.
  return key === "mac" || key === "uuid" ? text + (samples.get(key) ?? "").slice(text.length) : text;
}
