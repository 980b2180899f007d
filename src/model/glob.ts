/**
 * Glob patterns: `*` matches any characters, even none, and `?` matches one. There are no other wildcards and no
 * escapes.
 *
 * No pattern takes long, for any value: a search only goes back to the last `*`, so the steps are at most pattern times
 * value, and both are bounded.
 */

/** Longer values match no pattern: as long as the values that a selector may have. */
export const maxGlobValueLength = 253;

/** One character each, so that `?` never takes half of one. */
type Characters = string | readonly string[];

/** True when the pattern matches the whole value; never for one longer than 253 characters. */
export function matchesGlob(pattern: string, value: string): boolean {
  // Each character is at most two units of the text.
  if (value.length > 2 * maxGlobValueLength) return false;
  const text = charactersOf(value);
  return text.length <= maxGlobValueLength && isMatch(charactersOf(pattern), text);
}

/** True for a pattern that only asks for some number of characters. */
export function isOnlyWildcards(pattern: string): boolean {
  return /^[*?]+$/.test(pattern);
}

function charactersOf(text: string): Characters {
  return /[\ud800-\udfff]/.test(text) ? [...text] : text;
}

function isMatch(pattern: Characters, text: Characters): boolean {
  let at = 0;
  let inPattern = 0;
  // The last star, and where its match ends so far.
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
