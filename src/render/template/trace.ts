/**
 * Finds the place in a template for a place in its result. The author corrects the template, but loops and conditions
 * move its text. It renders once more, on demand.
 */

import { advance, isBefore, type TextPosition, textStart } from "../core/text-position.ts";

/** Receives every piece of a result, in order. */
export interface Trace {
  /**
   * @param at the piece's place in the template.
   * @param isCopy the piece is copied from the template; otherwise a tag printed it.
   */
  wrote(piece: string, at: TextPosition, isCopy: boolean): void;
}

/** A part of a result: copied from the template, or printed by a tag. */
export interface Piece {
  readonly text: string;
  readonly isValue: boolean;
}

/** Distinguishes copied text from printed values. */
export class PieceTrace implements Trace {
  /** Neighbours differ in kind, and none is empty. */
  readonly pieces: Piece[] = [];

  wrote(text: string, _at: TextPosition, isCopy: boolean): void {
    if (text === "") return;
    const last = this.pieces.at(-1);
    if (last?.isValue === !isCopy) this.pieces.splice(-1, 1, { text: last.text + text, isValue: !isCopy });
    else this.pieces.push({ text, isValue: !isCopy });
  }
}

export class PlaceTrace implements Trace {
  readonly #wanted: TextPosition;
  #end = textStart;
  #found: TextPosition | undefined;

  /** @param wanted a place in the result. */
  constructor(wanted: TextPosition) {
    this.#wanted = wanted;
  }

  /** The place in the template; that of the last piece for a place after the end, undefined for an empty result. */
  get found(): TextPosition | undefined {
    return this.#found;
  }

  wrote(piece: string, at: TextPosition, isCopy: boolean): void {
    const start = this.#end;
    if (piece === "" || isBefore(this.#wanted, start)) return;
    this.#end = advance(start, piece);
    this.#found = isCopy ? this.#within(start, at) : at;
  }

  /** In a copied piece the wanted place has the same distance from the start as in the template. */
  #within(start: TextPosition, at: TextPosition): TextPosition {
    const { line, column } = this.#wanted;
    if (!isBefore(this.#wanted, this.#end)) return at;
    if (line === start.line) return { line: at.line, column: at.column + column - start.column };
    return { line: at.line + line - start.line, column };
  }
}
