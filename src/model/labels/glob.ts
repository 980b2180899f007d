/**
 * Glob patterns: `*` matches any characters, even none, and `?` matches one. There are no other wildcards and no
 * escapes.
 *
 * No pattern takes long, whatever the value. A search only goes back to the last `*`. So it takes at most as many steps
 * as the pattern's length times the value's length, and both lengths are bounded.
 */

/** Longer values match no pattern. Values in a selector have the same limit. */
export const maxGlobValueLength = 253;

/** A text whose elements are whole characters, so that `?` never matches half of a surrogate pair. */
type Characters = string | readonly string[];

/** True when the pattern matches the whole value. False for any value longer than 253 characters. */
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
