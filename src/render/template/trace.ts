/**
 * Traces the pieces of a result back to the template. A check reports the place of a mistake in the result, but the
 * author corrects the template. Loops and conditions make the lines of template and result differ.
 */

import { advance, isBefore, type TextPosition, textStart } from "../core/text-position.ts";

/** Receives every piece of a result, in order. */
export interface Trace {
  /**
   * Records one piece.
   * @param at the piece's place in the template.
   * @param isCopy true if the piece is copied from the template, false if a tag printed it.
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
  /** Copied and printed pieces alternate. No piece is empty. */
  readonly pieces: Piece[] = [];

  wrote(text: string, _at: TextPosition, isCopy: boolean): void {
    if (text === "") return;
    const last = this.pieces.at(-1);
    if (last?.isValue === !isCopy) this.pieces.splice(-1, 1, { text: last.text + text, isValue: !isCopy });
    else this.pieces.push({ text, isValue: !isCopy });
  }
}

/** Finds the place in the template for one place in the result. */
export class PlaceTrace implements Trace {
  readonly #wanted: TextPosition;
  #end = textStart;
  #found: TextPosition | undefined;

  /** @param wanted a place in the result. */
  constructor(wanted: TextPosition) {
    this.#wanted = wanted;
  }

  /**
   * The place in the template. If the wanted place is after the end of the result, this is the place of the last piece.
   * Undefined for an empty result.
   */
  get found(): TextPosition | undefined {
    return this.#found;
  }

  wrote(piece: string, at: TextPosition, isCopy: boolean): void {
    const start = this.#end;
    if (piece === "" || isBefore(this.#wanted, start)) return;
    this.#end = advance(start, piece);
    this.#found = isCopy ? this.#within(start, at) : at;
  }

  /**
   * Returns the wanted place within a copied piece. It has the same distance from the start of the piece in both texts.
   */
  #within(start: TextPosition, at: TextPosition): TextPosition {
    const { line, column } = this.#wanted;
    if (!isBefore(this.#wanted, this.#end)) return at;
    if (line === start.line) return { line: at.line, column: at.column + column - start.column };
    return { line: at.line + line - start.line, column };
  }
}
