/** Texts of which it is known what their author wrote and what are values: only the former means something to a client. */

import type { Piece } from "./template-trace.ts";

export type Pieces = readonly Piece[];

/** A text; one without a value is the text itself, which its Profile has already. */
export type Filled = string | Pieces;

/** The whole text. */
export function textOf(filled: Filled): string {
  return typeof filled === "string" ? filled : filled.map(({ text }) => text).join("");
}

/** The same as a list. */
export function piecesOf(filled: Filled): Pieces {
  return typeof filled === "string" ? [own(filled)] : filled;
}

/** A text that no value has a part in. */
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

/** A part of a text, from one position in UTF-16 units up to another. */
export function slice(pieces: Pieces, from: number, to: number): Pieces {
  let start = 0;
  const parts = pieces.map(({ text, isValue }): Piece => {
    const part = text.slice(Math.max(0, from - start), Math.max(0, to - start));
    start += text.length;
    return { text: part, isValue };
  });
  return parts.filter(({ text }) => text !== "");
}
