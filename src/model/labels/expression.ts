/**
 * Expressions of a selector: conditions on a machine's label that do not name one exact value. For every operator, a
 * label with an empty value counts as absent, because iPXE sends `hostname=` if the machine has no name.
 *
 *   In            has one of the values           NotIn          has none of them, or is absent
 *   Exists        is there                        DoesNotExist   is absent
 *   Prefix        begins with one of the values   Glob           matches one of the patterns
 */

import { unreachable } from "../../lib/errors.ts";
import { compareBytes } from "../../lib/order.ts";
import { isJsonObject } from "../json.ts";
import { isMacPrefix, isUuid, isUuidPrefix, normalizeMac } from "./hardware-ids.ts";
import { normalizeLabel } from "./labels.ts";

export const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Prefix", "Glob"] as const;
export type Operator = (typeof operators)[number];

/** An expression as documents have it. */
export interface Expression {
  /** A label's name. */
  readonly key: string;
  readonly operator: Operator;
  /** Normalised, sorted and without duplicates; empty for Exists and DoesNotExist. */
  readonly values: readonly string[];
}

/** An expression prepared for matching. */
export interface Requirement extends Expression {
  /** True if a label's value meets the expression. The value is undefined for a machine without the label. */
  readonly accepts: (value: string | undefined) => boolean;
}

/** Prepares an expression for matching. */
export function toRequirement({ key, operator, values }: Expression): Requirement {
  const accepts = predicateOf(operator, values);
  return { key, operator, values, accepts };
}

function predicateOf(operator: Operator, values: readonly string[]): Requirement["accepts"] {
  switch (operator) {
    case "In":
    case "NotIn": {
      const known = new Set(values);
      const wanted = operator === "In";
      // An empty value of a label counts as absent. It is in no set, because expressions have no empty values.
      return (value) => (value !== undefined && known.has(value)) === wanted;
    }
    case "Exists":
      return isThere;
    case "DoesNotExist":
      return (value) => !isThere(value);
    case "Prefix":
      return (value) => isThere(value) && values.some((prefix) => value.startsWith(prefix));
    case "Glob":
      return (value) => isThere(value) && values.some((pattern) => matchesGlob(pattern, value));
    default:
      return unreachable(operator);
  }
}

function isThere(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

/** False for NotIn and DoesNotExist, which nearly every machine meets. */
export function isPositive({ operator }: Expression): boolean {
  return operator !== "NotIn" && operator !== "DoesNotExist";
}

/** True for an expression that no machine meets, because all of its values were dropped as impossible. */
export function isUnmet(expression: Expression): boolean {
  return isPositive(expression) && expression.operator !== "Exists" && expression.values.length === 0;
}

/**
 * True for a positive expression that is too weak to distinguish machines: it only asks for a label's presence, or for
 * a pattern with too few fixed characters.
 */
export function isBroadExpression({ key, operator, values }: Expression): boolean {
  if (operator === "Exists") return true;
  const isPattern = operator === "Prefix" || operator === "Glob";
  return isPattern && values.some((value) => fixedIn(value) < (leastFixed.get(key) ?? defaultLeastFixed));
}

// How many characters a pattern must fix. For `mac` this is the vendor's part, for `uuid` the first block. For other
// labels it is three characters, enough for the part that the names in a rack or fleet share.
const leastFixed: ReadonlyMap<string, number> = new Map([
  ["mac", 6],
  ["uuid", 8],
]);
const defaultLeastFixed = 3;

/** Counts the letters and digits of a pattern. */
function fixedIn(pattern: string): number {
  return pattern.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

/** Returns an expression as text: `mac In (52:54:00:a1:9c:ae,52:54:00:a1:9c:af)`, `os DoesNotExist`. */
export function expressionText({ key, operator, values }: Expression): string {
  return values.length === 0 ? `${key} ${operator}` : `${key} ${operator} (${values.join(",")})`;
}

/** An expression as its user wrote it. */
export interface WrittenExpression {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

/** The position of a value that no machine can have: the number of its expression, and its own number, from 0. */
export interface BadValue {
  readonly expression: number;
  readonly value: number;
  readonly key: string;
  readonly operator: Operator;
}

/**
 * Normalises expressions. Values get the form that labels have. Values and expressions are sorted, without duplicates,
 * so their written order changes nothing. A value that no machine can have is dropped and listed in `badValues`:
 * dropping it changes no answer.
 */
export function normalizeExpressions(written: readonly WrittenExpression[]): {
  readonly expressions: readonly Expression[];
  readonly badValues: readonly BadValue[];
} {
  const badValues: BadValue[] = [];
  const byText = new Map<string, Expression>();
  for (const [at, { key, operator, values }] of written.entries()) {
    const known = new Set<string>();
    for (const [index, text] of values.entries()) {
      const value = normalizeValue(key, operator, text);
      if (value === undefined) badValues.push({ expression: at, value: index, key, operator });
      else known.add(value);
    }
    const expression = { key, operator, values: [...known].toSorted(compareBytes) };
    byText.set(JSON.stringify(expression), expression);
  }
  const sorted = [...byText].toSorted(([a], [b]) => compareBytes(a, b));
  return { expressions: sorted.map(([, expression]) => expression), badValues };
}

/** Returns the form in which a value is compared; undefined if the label cannot have this value. */
function normalizeValue(key: string, operator: Operator, value: string): string | undefined {
  const forms = formsOf.get(key);
  if (forms === undefined) return value;
  if (operator !== "Prefix" && operator !== "Glob")
    return forms.isWhole(value) ? normalizeLabel(key, value) : undefined;
  const lower = value.toLowerCase();
  return (operator === "Prefix" ? forms.isPrefix : forms.isPattern)(lower) ? lower : undefined;
}

interface Forms {
  readonly isWhole: (value: string) => boolean;
  /** Expects lower case, like `isPattern`. */
  readonly isPrefix: (value: string) => boolean;
  readonly isPattern: (value: string) => boolean;
}

/** For labels whose values have a fixed form. */
const formsOf: ReadonlyMap<string, Forms> = new Map([
  [
    "mac",
    {
      isWhole: (value) => normalizeMac(value) !== undefined,
      isPrefix: isMacPrefix,
      isPattern: (value) => /^[0-9a-f:*?]+$/.test(value),
    },
  ],
  ["uuid", { isWhole: isUuid, isPrefix: isUuidPrefix, isPattern: (value) => /^[0-9a-f*?-]+$/.test(value) }],
]);

/** True for a well-formed `Expression`. It does not check values, because only davit writes the documents. */
export function isExpression(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { key, operator, values } = value;
  const isKnown = operators.some((known) => known === operator);
  return (
    typeof key === "string" && isKnown && Array.isArray(values) && values.every((each) => typeof each === "string")
  );
}

/** Longer values match no pattern. Values in a selector have the same limit. */
const maxGlobValueLength = 253;

/** A text whose elements are whole characters, so that `?` never matches half of a surrogate pair. */
type Characters = string | readonly string[];

/**
 * True when the pattern matches the whole value. `*` matches any characters, even none, and `?` matches one. There are
 * no other wildcards and no escapes. False for any value longer than 253 characters.
 *
 * No pattern takes long, whatever the value. A search only goes back to the last `*`. So it takes at most as many steps
 * as the pattern's length times the value's length, and both lengths are bounded.
 */
export function matchesGlob(pattern: string, value: string): boolean {
  // A character has at most two UTF-16 units.
  if (value.length > 2 * maxGlobValueLength) return false;
  const text = charactersOf(value);
  return text.length <= maxGlobValueLength && isMatch(charactersOf(pattern), text);
}

function charactersOf(text: string): Characters {
  return /[\ud800-\udfff]/.test(text) ? [...text] : text;
}

function isMatch(pattern: Characters, text: Characters): boolean {
  let at = 0;
  let inPattern = 0;
  // The position of the last star in the pattern, and where in the text its match ends so far.
  let star = -1;
  let starEnd = 0;
  while (at < text.length) {
    if (pattern[inPattern] === "*") {
      star = inPattern++;
      starEnd = at;
    } else if (pattern[inPattern] === "?" || pattern[inPattern] === text[at]) {
      inPattern++;
      at++;
    } else if (star >= 0) {
      inPattern = star + 1;
      at = ++starEnd;
    } else {
      return false;
    }
  }
  while (pattern[inPattern] === "*") inPattern++;
  return inPattern === pattern.length;
}
