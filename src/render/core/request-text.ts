/**
 * Quotes the strings of a request in answers that davit signs. A signature covers only the bytes of an answer, not its
 * path. So GRUB or a shell may run a signed answer that was made for another purpose. So both of them must
 * read the strings of a request as data only.
 */

import { assert } from "../../lib/errors.ts";

// The pattern leaves out `=`, because GRUB reads a line `check_signatures=no` as an assignment.
const harmless = /^[A-Za-z0-9._:@%+,/-]*$/;

// The pattern allows the `&` and `=` of queries. Every part after an `&` needs a `=`, unless it is empty: a shell would
// run any other part as a command.
const harmlessQuery = /^[A-Za-z0-9._:@%+,/=-]*(?:&(?:[A-Za-z0-9._:@%+,/-]*=[A-Za-z0-9._:@%+,/=-]*)?)*$/;

// Without the beginnings and the end that are signs of YAML (`@`, `%`, `---`, `a:`), and without the comma of lists.
const plainWord = /^(?:[A-Za-z0-9_+/](?:[A-Za-z0-9._:@%+/-]*[A-Za-z0-9._@%+/-])?)?$/;

/** True if a string is one plain word to GRUB, to a shell, in JSON and in YAML, and assigns nothing. */
export function isHarmless(text: string): boolean {
  return plainWord.test(text);
}

/**
 * Writes a request's value for the right side of an env line. A harmless value stays bare. Any other value gets single
 * quotes, and `?` for each control character.
 */
export function requestValue(value: string): string {
  return harmless.test(value) ? value : inSingleQuotes(value.replaceAll(/\p{Cc}/gu, "?"));
}

/**
 * Writes a raw query for the right side of an env line. It replaces no characters: HTTP allows no control characters in
 * a query.
 */
export function requestQuery(rawQuery: string): string {
  if (harmlessQuery.test(rawQuery)) return rawQuery;
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  return inSingleQuotes(rawQuery);
}

function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
