/**
 * Short-lived strings of a few hundred bytes in one block of memory, first in, first out. The garbage collector would
 * move each string twice, which costs more than copying it here.
 */

import { assert } from "../lib/errors.ts";

export class TextRing {
  readonly #bytes: Buffer;
  /** Where the next text begins. */
  #end = 0;
  /** Texts from here on are in use; everything is free when `#count` is 0. */
  #start = 0;
  #count = 0;

  constructor(maxBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes);
  }

  /** True when a text of this length can be added as it is now. */
  hasRoom(length: number): boolean {
    return this.#placeOf(length) >= 0;
  }

  /**
   * Adds two texts, one after the other: units of Latin-1, as Node decodes a client's bytes.
   * @returns where they begin. There must be room for both.
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

  /** A copy of an added text, or of a part of it. */
  text(start: number, end: number): string {
    return this.#bytes.toString("latin1", start, end);
  }

  /** Drops the oldest text. @param next where the following text begins; any number without one. */
  dropFirst(next: number): void {
    this.#count--;
    this.#start = next;
  }

  /** The place for a whole text of this length: after the newest or at the beginning; -1 if there is none. */
  #placeOf(length: number): number {
    const size = this.#bytes.length;
    if (this.#count === 0) return length <= size ? 0 : -1;
    const end = this.#end;
    // The new end must not equal the start: that would mean a text that ends just before the ring wraps.
    if (end < this.#start) return end + length < this.#start ? end : -1;
    if (end + length <= size) return end;
    return length < this.#start ? 0 : -1;
  }
}
