/**
 * From a place in what a template yields back to the place in the template: who mends a config reads the template, and
 * loops and conditions have moved everything. Made on demand, by rendering once more.
 */

import { advance, isBefore, type TextPosition, textStart } from "./text-position.ts";

/** Told of every piece of a result, in order. */
export interface Trace {
  /**
   * @param at where in the template the piece comes from.
   * @param isCopy the piece stands there word by word; otherwise it is what a tag printed.
   */
  wrote(piece: string, at: TextPosition, isCopy: boolean): void;
}

/** A part of a result: as the template's author wrote it, or what a tag printed. */
export interface Piece {
  readonly text: string;
  readonly isValue: boolean;
}

/** Keeps apart what is written in a template and what its tags print. */
export class PieceTrace implements Trace {
  /** No two of a kind stand side by side, and none is empty. */
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

  /** The place in the template; that of the last piece for a place behind the end, undefined for an empty result. */
  get found(): TextPosition | undefined {
    return this.#found;
  }

  wrote(piece: string, at: TextPosition, isCopy: boolean): void {
    const start = this.#end;
    if (piece === "" || isBefore(this.#wanted, start)) return;
    this.#end = advance(start, piece);
    this.#found = isCopy ? this.#within(start, at) : at;
  }

  /** The wanted place lies as far behind the beginning of a copied piece as it does in the template. */
  #within(start: TextPosition, at: TextPosition): TextPosition {
    const { line, column } = this.#wanted;
    if (!isBefore(this.#wanted, this.#end)) return at;
    if (line === start.line) return { line: at.line, column: at.column + column - start.column };
    return { line: at.line + line - start.line, column };
  }
}
