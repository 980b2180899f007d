/**
 * Quotes a request's strings in answers that davit signs. GRUB and a shell run an answer, and its signature does not
 * name the path it was made for. So strings from a machine must stay data in every use of the answer.
 */

import { assert } from "../../lib/errors.ts";

// No `=`: `check_signatures=no` on a line of its own is an assignment to GRUB.
const harmless = /^[A-Za-z0-9._:@%+,/-]*$/;

// With `&` and `=`, as in queries. After an `&`, a shell would run a part without `=` as a command.
const harmlessQuery = /^[A-Za-z0-9._:@%+,/=-]*(?:&(?:[A-Za-z0-9._:@%+,/-]*=[A-Za-z0-9._:@%+,/=-]*)?)*$/;

/** True for a string that is one plain word to GRUB, to a shell, in JSON and in YAML, and no assignment. */
export function isHarmless(text: string): boolean {
  return harmless.test(text);
}

/** A value after the `=` of an env line: bare if harmless, else in single quotes. */
export function requestValue(value: string): string {
  return harmless.test(value) ? value : inSingleQuotes(value.replaceAll(/\p{Cc}/gu, "?"));
}

/** The same for a raw query, without changing its characters. HTTP allows no control characters in it. */
export function requestQuery(rawQuery: string): string {
  if (harmlessQuery.test(rawQuery)) return rawQuery;
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  return inSingleQuotes(rawQuery);
}

function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
