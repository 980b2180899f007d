/** Reads parts of JSON that may have any form. */

import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";

/** Returns the value if it is an object, else an empty one. */
export function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Returns the entries of an object that have a text as their value; none for an absent object. */
export function textEntries(value: JsonValue | undefined): Readonly<Record<string, string>> {
  const entries = Object.entries(objectOf(value));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** False only if `hold` is false, null or absent. An unreadable `hold` keeps the machines waiting. */
export function mayHold(hold: JsonValue | undefined): boolean {
  return hold !== undefined && hold !== null && hold !== false;
}
