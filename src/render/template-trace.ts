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
