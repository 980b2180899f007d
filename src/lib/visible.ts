/** Makes foreign texts safe for a log line or a terminal. */

/** Room for a label's longest name and the start of a value, or for a UUID with its name. */
const maxShownLength = 128;

/** At most 128 visible characters; a cut text ends in three dots. */
export function shown(text: string): string {
  return visible(text.length > maxShownLength ? `${text.slice(0, maxShownLength)}...` : text);
}

/** Control characters, and those that turn the direction of writing or end a line, become `\u{...}`. */
export function visible(text: string): string {
  return text.toWellFormed().replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
