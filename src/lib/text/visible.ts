/** Makes texts of clients safe for a log line or a terminal. */

/** Enough for the longest name of a label and the beginning of its value. */
const maxShownLength = 128;

/** Returns the first 128 characters, made visible. A cut text ends in three dots. */
export function shown(text: string): string {
  return visible(text.length > maxShownLength ? `${text.slice(0, maxShownLength)}...` : text);
}

/** Replaces control characters, and those that change the writing direction or end a line, by `\u{...}`. */
export function visible(text: string): string {
  return text.toWellFormed().replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/**
 * Returns a value as JSON in one line. Every character outside ASCII, and DEL, is escaped as `\uXXXX`: terminals obey
 * some of them, and the text's length is its bytes.
 */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
