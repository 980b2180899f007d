/** Makes up a machine that a selector matches: its labels, and a request. All functions here are pure. */

import { type Expression, isPositive } from "../labels/expression.ts";
import { type Labels, labelsFromQuery } from "../labels/labels.ts";
import type { Selection } from "../objects/group.ts";

/** The identity labels of a sample machine. RFC 7042 reserves the MAC address for documentation. */
export const sampleIdentity: ReadonlyMap<string, string> = new Map([
  ["uuid", "01234567-89ab-4cde-8f01-23456789abcd"],
  ["mac", "00:00:5e:00:53:01"],
  ["hostname", "sample"],
  ["serial", "SAMPLE"],
]);

/**
 * Returns values for the labels that the selector asks for, and no other labels. If no value of `candidates` meets all
 * expressions of a label, the result lacks this label and does not match the selector.
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
    sampleIdentity.get(key) ?? "sample",
    ...wishes.flatMap((wish) => wish.values.map((value) => instanceOf(wish, value))),
  ];
}

/**
 * Makes a label's value from one value of an expression:
 *
 *   role In ("web")           web
 *   hostname Glob ("n?-*")    n0-
 *   mac Prefix ("52:54:00")   52:54:00:00:53:01, with the end of the sample MAC address
 */
function instanceOf({ key, operator }: Expression, value: string): string {
  if (operator !== "Prefix" && operator !== "Glob") return value;
  const text = operator === "Glob" ? value.replaceAll("*", "").replaceAll("?", "0") : value;
  return key === "mac" || key === "uuid" ? text + (sampleIdentity.get(key) ?? "").slice(text.length) : text;
}

interface SampleRequest {
  readonly labels: Labels;
  /** As a machine sends it, without the `?`. */
  readonly rawQuery: string;
}

/** Makes up a request: the labels that the selector asks for, and sample values for the other identity labels. */
export function sampleRequest(selection: Selection): SampleRequest {
  // Leaves out sample values that the selector excludes: a Group may select exactly the machines without a hostname.
  const others = [...sampleIdentity].filter(([label, value]) =>
    selection.expressions.every(({ key, accepts }) => key !== label || accepts(value)),
  );
  const rawQuery = [...new Map([...others, ...sampleLabels(selection)])].map(pairOf).join("&");
  return { labels: labelsFromQuery(rawQuery), rawQuery };
}

/** iPXE sends a MAC address with hyphens (`${mac:hexhyp}`). */
function pairOf([label, value]: readonly [string, string]): string {
  const sent = label === "mac" ? value.replaceAll(":", "-") : value;
  return `${encodeURIComponent(label)}=${encodeURIComponent(sent.toWellFormed())}`;
}
