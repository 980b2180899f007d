/**
 * How texts of a request stand in what davit signs. GRUB and a shell run what they read, and a signature says nothing of
 * the path that a text was made for: so a machine's words must be data wherever the text ends up.
 */

import { assert } from "../lib/errors.ts";

// No `=`: `check_signatures=no` on a line of its own is an assignment to GRUB.
const harmless = /^[A-Za-z0-9._:@%+,/-]*$/;

// With `&` and `=`, as queries are. A part without `=` would be a command to a shell, behind the `&` before it.
const harmlessQuery = /^[A-Za-z0-9._:@%+,/=-]*(?:&(?:[A-Za-z0-9._:@%+,/-]*=[A-Za-z0-9._:@%+,/=-]*)?)*$/;

/** True for a text that is one plain word to GRUB, to a shell, in JSON and in YAML, and no assignment. */
export function isHarmless(text: string): boolean {
  return harmless.test(text);
}

/** A value as it stands behind the `=` of an env line: bare where it is harmless, else in single quotes. */
export function requestValue(value: string): string {
  return harmless.test(value) ? value : inSingleQuotes(value.replaceAll(/\p{Cc}/gu, "?"));
}

/** The same for a raw query, whose every character is kept. HTTP allows no control characters in it. */
export function requestQuery(rawQuery: string): string {
  if (harmlessQuery.test(rawQuery)) return rawQuery;
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  return inSingleQuotes(rawQuery);
}

function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
