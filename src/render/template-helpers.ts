/**
 * The helpers of the template language, in one table. Each is a pure function of its arguments; an absent variable
 * arrives as null. docs/templates.md shows each with an example, and a test runs those.
 */

import type { JsonValue } from "../model/json.ts";
import { normalizeMac } from "../model/labels.ts";
import type { RenderBudget } from "./template-limits.ts";
import { canonicalJson, isList, isTruthy, memberOf, textOf } from "./values.ts";

/** SHA-256 of a text's UTF-8 bytes, in lower-case hexadecimal. Handed in, because hashing is not arithmetic of ours. */
export type Sha256 = (text: string) => string;

export interface HelperTools {
  readonly sha256: Sha256;
  readonly budget: RenderBudget;
}

type Args = readonly JsonValue[];

interface Helper {
  readonly min: number;
  readonly max: number;
  /** @returns undefined when the helper cannot use its arguments. */
  readonly run: (args: Args, tools: HelperTools) => JsonValue | undefined;
}

// Deeper indentation than this is a mistake, and a way to make a small text very large.
const maxIndent = 100;

const helpers = {
  lookup: { min: 2, max: 2, run: ([value = null, key = null]) => memberOf(value, textOf(key)) ?? null },
  eq: { min: 2, max: 2, run: ([a = null, b = null], { budget }) => areEqual(a, b, budget) },
  ne: { min: 2, max: 2, run: ([a = null, b = null], { budget }) => !areEqual(a, b, budget) },
  and: { min: 1, max: 16, run: (args) => args.find((value) => !isTruthy(value)) ?? args.at(-1) ?? null },
  or: { min: 1, max: 16, run: (args) => args.find(isTruthy) ?? args.at(-1) ?? null },
  not: { min: 1, max: 1, run: ([value]) => !isTruthy(value) },
  default: { min: 2, max: 2, run: ([value = null, other = null]) => (value === null || value === "" ? other : value) },
  json: { min: 1, max: 1, run: ([value = null]) => canonicalJson(value) },
  quote: { min: 1, max: 1, run: ([value]) => JSON.stringify(textOf(value)) },
  indent: { min: 2, max: 2, run: indent },
  base64: { min: 1, max: 1, run: ([value]) => Buffer.from(textOf(value), "utf8").toString("base64") },
  lower: { min: 1, max: 1, run: ([value]) => textOf(value).toLowerCase() },
  upper: { min: 1, max: 1, run: ([value]) => textOf(value).toUpperCase() },
  replace: { min: 3, max: 3, run: replace },
  join: { min: 2, max: 2, run: join },
  split: { min: 2, max: 2, run: split },
  sha256: { min: 1, max: 1, run: ([value], { sha256 }) => sha256(textOf(value)) },
  macHyphen: { min: 1, max: 1, run: ([value]) => macWith("-", value) },
  macBare: { min: 1, max: 1, run: ([value]) => macWith("", value) },
} as const satisfies Record<string, Helper>;

export type HelperName = keyof typeof helpers;

/** Every helper, for the documentation's test. */
export const helperNames: readonly string[] = Object.keys(helpers);

export function isHelperName(name: string): name is HelperName {
  return Object.hasOwn(helpers, name);
}

/** How many arguments a helper takes. */
export function helperArity(name: HelperName): { readonly min: number; readonly max: number } {
  return helpers[name];
}

/**
 * Calls a helper.
 * @returns undefined when it cannot use its arguments.
 * @throws {RenderError} when the budget does not allow the work or its result.
 */
export function runHelper(name: HelperName, args: Args, tools: HelperTools): JsonValue | undefined {
  const helper: Helper = helpers[name];
  for (const arg of args) chargeText(arg, tools.budget);
  const result = helper.run(args, tools);
  chargeText(result, tools.budget);
  return result;
}

function chargeText(value: JsonValue | undefined, budget: RenderBudget): void {
  budget.claim(typeof value === "string" || isList(value) ? value.length : 0);
}

/** Equal means the same kind and the same value; lists and objects by their content. A number never equals a text. */
function areEqual(a: JsonValue, b: JsonValue, budget: RenderBudget): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  const [textA, textB] = [canonicalJson(a), canonicalJson(b)];
  budget.work(textA.length + textB.length);
  return textA === textB;
}

function indent([value, width = null]: Args, { budget }: HelperTools): string | undefined {
  if (typeof width !== "number" || !Number.isInteger(width) || width < 0 || width > maxIndent) return undefined;
  const lines = textOf(value).split("\n");
  budget.claim(lines.length * width);
  // An empty line stays empty: trailing blanks mean something in YAML block texts.
  return lines.map((line) => (line === "" ? line : " ".repeat(width) + line)).join("\n");
}

function replace([value, from, to]: Args, { budget }: HelperTools): string {
  const [text, wanted, other] = [textOf(value), textOf(from), textOf(to)];
  if (wanted === "") return text;
  const pieces = text.split(wanted);
  budget.claim(text.length + (pieces.length - 1) * (other.length - wanted.length));
  return pieces.join(other);
}

function join([value = null, separator]: Args, { budget }: HelperTools): string | undefined {
  if (value !== null && !isList(value)) return undefined;
  const [texts, between] = [(value ?? []).map(textOf), textOf(separator)];
  budget.claim(texts.reduce((sum, text) => sum + text.length + between.length, 0));
  return texts.join(between);
}

function split([value, separator]: Args): JsonValue {
  const [text, between] = [textOf(value), textOf(separator)];
  if (text === "") return [];
  return between === "" ? [text] : text.split(between);
}

/** A MAC address with another separator; absent and empty stay empty. */
function macWith(separator: string, value: JsonValue | undefined): string | undefined {
  const text = textOf(value);
  return text === "" ? "" : normalizeMac(text)?.replaceAll(":", separator);
}
