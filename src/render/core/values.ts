/** Operations on JSON values for templates and metadata: reach into them, test them, and write them as text. */

import { compareBytes } from "../../lib/order.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";

/** Distinguishes a list from every other value. */
export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/**
 * Takes one step of a path: to an object's own member, to an element of a list, or to the `length` of a list. It never
 * reaches an inherited member.
 * @returns undefined if there is no such member.
 */
export function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (isList(value)) {
    if (name === "length") return value.length;
    return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  }
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** False for absent, null, false, 0, the empty string and the empty list, as in Handlebars. */
export function isTruthy(value: JsonValue | undefined): boolean {
  return isList(value) ? value.length > 0 : Boolean(value);
}

/** Returns an object's members in byte order of their keys, so that the order in the source does not matter. */
export function sortedEntries(value: JsonObject): readonly (readonly [key: string, value: JsonValue])[] {
  return Object.entries(value).toSorted(([a], [b]) => compareBytes(a, b));
}

/**
 * Returns a value as a template prints it. Null prints nothing. A list prints its elements with commas between them.
 */
export function textOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return numberText(value);
  if (isList(value)) return value.map(textOf).join(",");
  // Handlebars prints objects in the same way, which shows the author that the helper `json` is missing.
  return isJsonObject(value) ? "[object Object]" : String(value);
}

/** Returns a number in plain decimal, never with an exponent: 1e21 is `1000000000000000000000`. */
export function numberText(value: number): string {
  const [mantissa = "", exponent] = String(value).split("e");
  if (exponent === undefined) return mantissa;
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)\.?(\d*)$/.exec(mantissa) ?? [];
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  return point <= 0 ? `${sign}0.${"0".repeat(-point)}${digits}` : sign + digits.padEnd(point, "0");
}

/**
 * Returns metadata with its defaults. A top-level name of the metadata replaces the default of that name as a whole:
 * objects are not merged.
 */
export function withDefaults(metadata: JsonObject, defaults: JsonObject | undefined): JsonObject {
  return defaults === undefined ? metadata : { ...defaults, ...metadata };
}

/** Returns a value as JSON with sorted keys, so that equal values have equal texts. */
export function canonicalJson(value: JsonValue): string {
  return JSON.stringify(sortedCopy(value));
}

function sortedCopy(value: JsonValue): JsonValue {
  if (isList(value)) return value.map(sortedCopy);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(sortedEntries(value).map(([key, member]) => [key, sortedCopy(member)]));
}
