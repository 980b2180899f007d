/**
 * Quotes the strings of a request in `/metadata`, so that a shell that sources the answer reads them as data only.
 */

import { assert } from "../../lib/errors.ts";

// The pattern leaves out `=`, so that no reader takes a value for an assignment.
const harmless = /^[A-Za-z0-9._:@%+,/-]*$/;

// The pattern allows the `&` and `=` of queries. Every part after an `&` needs a `=`, unless it is empty: a shell would
// run any other part as a command.
const harmlessQuery = /^[A-Za-z0-9._:@%+,/=-]*(?:&(?:[A-Za-z0-9._:@%+,/-]*=[A-Za-z0-9._:@%+,/=-]*)?)*$/;

/**
 * Writes a request's value for the right side of an env line. A harmless value stays bare. Any other value gets single
 * quotes, and `?` for each control character.
 * @param isOpen true if earlier lines leave a quote open: then quotes do not protect. So `?` replaces each character
 * that is not harmless.
 */
export function requestValue(value: string, isOpen: boolean): string {
  if (harmless.test(value)) return value;
  return isOpen ? masked(value) : inSingleQuotes(value.replaceAll(/\p{Cc}/gu, "?"));
}

/**
 * Writes a raw query for the right side of an env line. Unless `isOpen`, it replaces no characters: HTTP allows no
 * control characters in a query.
 * @param isOpen as for `requestValue`.
 */
export function requestQuery(rawQuery: string, isOpen: boolean): string {
  if (harmlessQuery.test(rawQuery)) return rawQuery;
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  return isOpen ? masked(rawQuery) : inSingleQuotes(rawQuery);
}

function masked(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9._:@%+,/-]/gu, "?");
}

function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
