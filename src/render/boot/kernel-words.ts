/**
 * Words of a kernel's command line. Only the author's text separates words: a value is always part of one word. Linux
 * splits its command line at white space outside double quotes. It knows no other quotes and no escapes. It removes
 * double quotes around a word, or around the part after the `=` of a word (lib/cmdline.c, next_arg).
 */

import type { Piece } from "../template/trace.ts";
import { type Filled, hasValue, own, type Pieces, piecesOf, valueMatches } from "./pieces.ts";

/** A word as the author of the argument means it. */
export interface Word {
  /** The word as written, with the author's double quotes. */
  readonly source: Pieces;
  /** The word without the author's double quotes. */
  readonly bare: Pieces;
}

/**
 * Splits an argument at white space outside the author's double quotes: `opt="two words" quiet` gives `opt=two words`
 * and `quiet`. A quote that is not closed extends to the end. Empty words are dropped.
 */
export function wordsOf(argument: Filled): readonly Word[] {
  const words: { readonly source: Piece[]; readonly bare: Piece[] }[] = [{ source: [], bare: [] }];
  let isQuoted = false;
  for (const piece of marksOf(argument)) {
    const word = words.at(-1);
    const { text, isValue } = piece;
    if (!(isQuoted || isValue) && /^\s/.test(text)) words.push({ source: [], bare: [] });
    else word?.source.push(piece);
    if (isValue || !/^["\s]/.test(text) || (isQuoted && text !== '"')) word?.bare.push(piece);
    if (!isValue && text === '"') isQuoted = !isQuoted;
  }
  return words.filter(({ bare }) => bare.length > 0);
}

/** True if the author of an argument left a double quote open. */
export function hasOpenQuote(argument: Filled): boolean {
  return marksOf(argument).filter(({ text, isValue }) => !isValue && text === '"').length % 2 === 1;
}

/** True if no value has a character that iPXE or Linux could misread. Nearly all arguments are like this. */
export function isHarmless(argument: Filled): boolean {
  return typeof argument === "string" || !valueMatches(argument, /[^\w%+,./:=@~-]/);
}

/** True if Linux reads a text as one word and removes no quote that belongs to a value. */
export function isOneWord(text: Pieces): boolean {
  const letters = text.flatMap((piece) => [...piece.text].map((letter) => ({ letter, isValue: piece.isValue })));
  let isQuoted = false;
  for (const { letter } of letters) {
    if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && endsWord(letter)) return false;
  }
  const first = letters[0];
  // Linux reads a `=` at the start as part of the name, also after a quote.
  const nameAt = first?.letter === '"' ? 1 : 0;
  const begin = letters[letters.findIndex(({ letter }, at) => at > nameAt && letter === "=") + 1];
  const isUnquoted = [first, begin].some((at) => at?.letter === '"');
  const dropped = isUnquoted ? [first, begin, letters.at(-1)] : [];
  return !(isQuoted || dropped.some((at) => at?.letter === '"' && at.isValue));
}

/** Returns the bare word in double quotes. */
export function quoted({ bare }: Word): Pieces {
  return [own('"'), ...bare, own('"')];
}

/**
 * True if a value contains the byte A0. Linux reads this byte as white space, but UTF-8 uses it in letters such as `à`.
 */
export function hasBlankByte(word: Pieces): boolean {
  return word.some(({ text, isValue }) => isValue && [...text].some((letter) => letter !== " " && endsWord(letter)));
}

/** True for a word that contains a value. */
export function isFilled({ source }: Word): boolean {
  return hasValue(source);
}

/**
 * Splits an argument into pieces. Values stay whole. The author's text is split into quotes, white space, and the rest.
 */
function marksOf(argument: Filled): Pieces {
  return piecesOf(argument).flatMap((piece) =>
    piece.isValue ? [piece] : (piece.text.match(/"|\s+|[^"\s]+/g) ?? []).map(own),
  );
}

function endsWord(letter: string): boolean {
  return letter === " " || encodeURIComponent(letter.toWellFormed()).includes("%A0");
}
