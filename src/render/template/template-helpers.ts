/**
 * The helpers of the template language, in one table. Each helper is a pure function of its arguments. An absent
 * variable is passed as null. docs/use/templates.md has an example of each helper, and a test runs the examples.
 */

import type { JsonValue } from "../../model/json.ts";
import { normalizeMac } from "../../model/labels/hardware-ids.ts";
import { canonicalJson, isList, isTruthy, memberOf, textOf } from "../core/values.ts";
import { countValue, type RenderBudget } from "./limits.ts";

/** SHA-256 of a string's UTF-8 bytes, in lower-case hexadecimal. The caller supplies the implementation. */
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

// Deeper indentation is a mistake. It would also let a small text grow very large.
const maxIndent = 100;

const helpers = {
  lookup: { min: 2, max: 2, run: ([value = null, key], tools) => memberOf(value, printed(key, tools)) ?? null },
  eq: { min: 2, max: 2, run: ([a = null, b = null], tools) => areEqual(a, b, tools) },
  ne: { min: 2, max: 2, run: ([a = null, b = null], tools) => !areEqual(a, b, tools) },
  and: { min: 1, max: 16, run: (args) => args.find((value) => !isTruthy(value)) ?? args.at(-1) ?? null },
  or: { min: 1, max: 16, run: (args) => args.find(isTruthy) ?? args.at(-1) ?? null },
  not: { min: 1, max: 1, run: ([value]) => !isTruthy(value) },
  default: { min: 2, max: 2, run: ([value = null, other = null]) => (value === null || value === "" ? other : value) },
  json: { min: 1, max: 1, run: ([value = null], tools) => json(value, tools) },
  quote: { min: 1, max: 1, run: ([value], tools) => JSON.stringify(printed(value, tools)) },
  indent: { min: 2, max: 2, run: indent },
  base64: { min: 1, max: 1, run: ([value], tools) => Buffer.from(printed(value, tools), "utf8").toString("base64") },
  urlEncode: { min: 1, max: 1, run: ([value], tools) => urlEncoded(printed(value, tools)) },
  lower: { min: 1, max: 1, run: ([value], tools) => printed(value, tools).toLowerCase() },
  upper: { min: 1, max: 1, run: ([value], tools) => printed(value, tools).toUpperCase() },
  replace: { min: 3, max: 3, run: replace },
  join: { min: 2, max: 2, run: join },
  split: { min: 2, max: 2, run: split },
  sha256: { min: 1, max: 1, run: ([value], tools) => tools.sha256(printed(value, tools)) },
  macHyphen: { min: 1, max: 1, run: ([value], tools) => macWith("-", printed(value, tools)) },
  macBare: { min: 1, max: 1, run: ([value], tools) => macWith("", printed(value, tools)) },
} as const satisfies Record<string, Helper>;

export type HelperName = keyof typeof helpers;

/** Every helper, for the documentation's test. */
export const helperNames: readonly string[] = Object.keys(helpers);

export function isHelperName(name: string): name is HelperName {
  return Object.hasOwn(helpers, name);
}

/** Returns how many arguments a helper takes. */
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
  const result = helper.run(args, tools);
  if (typeof result === "string") tools.budget.claim(result.length);
  return result;
}

/** Escapes all but letters, digits and `-._~`, so that the text fits into any part of a URL. */
function urlEncoded(text: string): string {
  const code = (letter: string) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replaceAll(/[!'()*]/g, code);
}

/** Returns a value as a template prints it. The budget counts every visited value. */
function printed(value: JsonValue | undefined, { budget }: HelperTools): string {
  countValue(value, false, budget);
  return textOf(value);
}

function json(value: JsonValue, { budget }: HelperTools): string {
  countValue(value, true, budget);
  return canonicalJson(value);
}

/**
 * True if both have the same type and value. Lists and objects are compared by content. A number never equals a string.
 */
function areEqual(a: JsonValue, b: JsonValue, tools: HelperTools): boolean {
  if (typeof a === "object" && typeof b === "object") return json(a, tools) === json(b, tools);
  if (typeof a === "string") tools.budget.work(a.length);
  return a === b;
}

function indent([value, width = null]: Args, tools: HelperTools): string | undefined {
  if (typeof width !== "number" || !Number.isInteger(width) || width < 0 || width > maxIndent) return undefined;
  const lines = cut(printed(value, tools), "\n", tools);
  tools.budget.claim(lines.length * width);
  // An empty line stays empty, because trailing blanks have a meaning in YAML block scalars.
  return lines.map((line) => (line === "" ? line : " ".repeat(width) + line)).join("\n");
}

function replace([value, from, to]: Args, tools: HelperTools): string {
  const [text, wanted, other] = [printed(value, tools), printed(from, tools), printed(to, tools)];
  if (wanted === "") return text;
  const pieces = cut(text, wanted, tools);
  tools.budget.claim(text.length + (pieces.length - 1) * (other.length - wanted.length));
  return pieces.join(other);
}

function join([value = null, separator]: Args, tools: HelperTools): string | undefined {
  if (value !== null && !isList(value)) return undefined;
  const between = printed(separator, tools);
  countValue(value, false, tools.budget);
  const texts = (value ?? []).map(textOf);
  tools.budget.claim(texts.reduce((sum, text) => sum + text.length + between.length, 0));
  return texts.join(between);
}

function split([value, separator]: Args, tools: HelperTools): JsonValue {
  const [text, between] = [printed(value, tools), printed(separator, tools)];
  if (text === "") return [];
  return between === "" ? [text] : cut(text, between, tools);
}

/** Splits a text. Before that, the budget counts a quarter of a unit for each piece that is possible. */
function cut(text: string, between: string, { budget }: HelperTools): string[] {
  budget.count(text.length / between.length / 4);
  return text.split(between);
}

/**
 * Writes a MAC address with another separator. An empty text stays empty.
 * @returns undefined for any other text that is no MAC address.
 */
function macWith(separator: string, text: string): string | undefined {
  return text === "" ? "" : normalizeMac(text)?.replaceAll(":", separator);
}
