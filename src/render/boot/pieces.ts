/**
 * Texts in which the author's words and the values stay distinct: only the author's words have a meaning to a client.
 */

import type { Piece } from "../template/trace.ts";

export type Pieces = readonly Piece[];

/** A text. Without values it is a plain string, which its Profile already has in memory. */
export type Filled = string | Pieces;

/** The whole text. */
export function textOf(filled: Filled): string {
  return typeof filled === "string" ? filled : filled.map(({ text }) => text).join("");
}

/** The text as a list of pieces. */
export function piecesOf(filled: Filled): Pieces {
  return typeof filled === "string" ? [own(filled)] : filled;
}

/** A text without a value. */
export function own(text: string): Piece {
  return { text, isValue: false };
}

export function hasValue(pieces: Pieces): boolean {
  return pieces.some(({ isValue }) => isValue);
}

/** True when one of the values has a match. */
export function valueMatches(pieces: Pieces, pattern: RegExp): boolean {
  return pieces.some(({ text, isValue }) => isValue && pattern.test(text));
}

/**
 * Splits a text at sorted offsets, in UTF-16 units: the result has one part more than `places`. Omits empty pieces.
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
