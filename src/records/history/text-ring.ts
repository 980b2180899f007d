/**
 * Stores short-lived strings of a few hundred bytes in one block of memory, first in, first out. If each were a string
 * of its own, the garbage collector would move it twice, which costs more than a copy into this block.
 */

import { assert } from "../../lib/errors.ts";

export class TextRing {
  readonly #bytes: Buffer;
  /** The offset after the newest text. */
  #end = 0;
  /** The offset of the oldest text. If `#count` is 0, everything is free. */
  #start = 0;
  #count = 0;

  constructor(maxBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes);
  }

  /** True if there is room for a text of this length now. */
  hasRoom(length: number): boolean {
    return this.#placeOf(length) >= 0;
  }

  /**
   * Adds two texts, one directly after the other. There must be room for both. They must be Latin-1, as all text that
   * Node decodes from the head of a request.
   * @returns the offset of the first text.
   */
  add(first: string, second: string): number {
    const length = first.length + second.length;
    const place = this.#placeOf(length);
    assert(place >= 0, "a text has room before it is added");
    if (this.#count === 0) this.#start = place;
    if (first !== "") this.#bytes.write(first, place, first.length, "latin1");
    if (second !== "") this.#bytes.write(second, place + first.length, second.length, "latin1");
    this.#end = place + length;
    this.#count++;
    return place;
  }

  /** Returns a copy of an added text, or of a part of it. */
  text(start: number, end: number): string {
    return this.#bytes.toString("latin1", start, end);
  }

  /** Drops the oldest text. @param next the offset of the next text; any number if there is none. */
  dropFirst(next: number): void {
    this.#count--;
    this.#start = next;
  }

  /** Returns an offset for a text of this length, after the newest text or at the beginning; -1 if there is no room. */
  #placeOf(length: number): number {
    const size = this.#bytes.length;
    if (this.#count === 0) return length <= size ? 0 : -1;
    const end = this.#end;
    // The new end must stay below the start. If both were equal, the texts would seem to begin at the start and end
    // where the block ends.
    if (end < this.#start) return end + length < this.#start ? end : -1;
    if (end + length <= size) return end;
    return length < this.#start ? 0 : -1;
  }
}
