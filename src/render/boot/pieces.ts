/**
 * Texts that keep the author's text and the values apart. To a client, only the author's text may be syntax, such as a
 * quote or a blank.
 */

import type { Piece } from "../template/trace.ts";

export type Pieces = readonly Piece[];

/**
 * A rendered text: pieces if it contains a value, else a plain string. For a text without tags, this is the string of
 * the Profile, which takes no more memory.
 */
export type Filled = string | Pieces;

/** Returns the whole text. */
export function textOf(filled: Filled): string {
  return typeof filled === "string" ? filled : filled.map(({ text }) => text).join("");
}

/** Returns the text as a list of pieces. */
export function piecesOf(filled: Filled): Pieces {
  return typeof filled === "string" ? [own(filled)] : filled;
}

/** Makes a piece of the author's own text. */
export function own(text: string): Piece {
  return { text, isValue: false };
}

export function hasValue(pieces: Pieces): boolean {
  return pieces.some(({ isValue }) => isValue);
}

/** True if the pattern matches one of the values. */
export function valueMatches(pieces: Pieces, pattern: RegExp): boolean {
  return pieces.some(({ text, isValue }) => isValue && pattern.test(text));
}

/**
 * Splits a text at sorted offsets, which count UTF-16 units. The result has one part more than `places`. Empty pieces
 * are left out.
 */
export function split(pieces: Pieces, places: readonly number[]): readonly Pieces[] {
  const parts: Piece[][] = [[]];
  let start = 0;
  for (const { text, isValue } of pieces) {
    let from = 0;
    for (let next = places[parts.length - 1]; next !== undefined && next <= start + text.length; ) {
      if (next - start > from) parts.at(-1)?.push({ text: text.slice(from, next - start), isValue });
      from = next - start;
      parts.push([]);
      next = places[parts.length - 1];
    }
    if (from < text.length) parts.at(-1)?.push({ text: text.slice(from), isValue });
    start += text.length;
  }
  return parts;
}
